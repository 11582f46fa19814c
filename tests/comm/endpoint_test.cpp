// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <support/child_process.hpp>
#include <support/says.hpp>
#include <weightcast/comm/detail/connect.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/comm/listen_socket.hpp>
#include <weightcast/comm/resolve.hpp>

BOOST_AUTO_TEST_SUITE(endpoint)

namespace wc = weightcast;
using namespace std::chrono_literals;
using wc::deadline;

BOOST_AUTO_TEST_CASE(the_written_form_is_read_back) {
    for (std::string const host :
         {"127.0.0.1", "0.0.0.0", "255.255.255.255", "localhost", "trainer-0.pool.svc", "a_b", "x",
          "host.example.", "::1", "::", "fd00::5", "fe80::1%eth0", "fe80::1%2", "::ffff:1.2.3.4",
          "2001:db8:1:2:3:4:5:6"}) {
        for (int const port : {0, 1, 29500, 65535}) {
            wc::endpoint const at{host, port};
            BOOST_TEST(at.host() == host);
            BOOST_TEST(at.port() == port);
            BOOST_TEST((wc::endpoint{wc::to_string(at)} == at), wc::to_string(at));
            if (host.find(':') != std::string::npos) {
                BOOST_TEST((wc::endpoint{"[" + host + "]", port} == at));
            }
        }
    }
    BOOST_TEST(wc::to_string(wc::endpoint{"::1", 29500}) == "[::1]:29500");
    BOOST_TEST(wc::to_string(wc::endpoint{"[fe80::1%eth0]", 1}) == "[fe80::1%eth0]:1");
    BOOST_TEST(wc::to_string(wc::endpoint{"trainer:29500"}) == "trainer:29500");
}

BOOST_AUTO_TEST_CASE(options_take_a_string) {
    struct options {
        wc::endpoint at;
    };
    options const a{.at = "[::1]:7"};
    options const b{.at = std::string{"::1"} == a.at.host() ? "host:7" : "other:7"};
    BOOST_TEST(a.at.port() == 7);
    BOOST_TEST(b.at.host() == "host");
    BOOST_TEST(wc::endpoint{}.empty());
    BOOST_TEST(!a.at.empty());
    BOOST_TEST((a.at.with_port(9) == wc::endpoint{"::1", 9}));
}

BOOST_AUTO_TEST_CASE(what_is_no_host_and_port_is_refused_by_name) {
    for (std::string const text : {"",
                                   ":",
                                   ":29500",
                                   "host:",
                                   "host",
                                   "host:99999",
                                   "host:65536",
                                   "host:-1",
                                   "host:+1",
                                   "host: 1",
                                   "host:1 ",
                                   "host:0x10",
                                   "host:1a",
                                   "host:000001",
                                   "host:123456789012345678901",
                                   "::1:29500",
                                   "::1",
                                   "[::1]",
                                   "[::1]:",
                                   "[::1:29500",
                                   "::1]:29500",
                                   "[]:1",
                                   "[host]:1",
                                   "[1.2.3.4]:1",
                                   "fe80::1%eth0:1",
                                   "[fe80::1%]:1",
                                   "[fe80::1%a b]:1",
                                   "[::g]:1",
                                   "999.1.1.1:1",
                                   "1.2.3:1",
                                   "1.2.3.4.5:1",
                                   "012.1.1.1:1",
                                   "-a:1",
                                   "a..b:1",
                                   ".a:1",
                                   "a b:1",
                                   "a/b:1",
                                   "http://a:1",
                                   "a\n:1",
                                   "a:1:2",
                                   "tcp://[::1]:1"}) {
        BOOST_CHECK_EXCEPTION(wc::endpoint{text}, wc::bad_argument, [&](wc::bad_argument const& e) {
            // what was wrong is in the message: the text itself, or the part of it
            return std::string_view{e.what()}.find('\'') != std::string_view::npos;
        });
    }
    BOOST_CHECK_THROW((wc::endpoint{std::string(254, 'a'), 1}), wc::bad_argument);
    BOOST_CHECK_THROW((wc::endpoint{std::string(64, 'a') + ".b", 1}), wc::bad_argument);
    BOOST_TEST((wc::endpoint{std::string(63, 'a') + ".b", 1}.port() == 1));
    BOOST_CHECK_THROW((wc::endpoint{std::string("a\0b", 3), 1}), wc::bad_argument);
    BOOST_CHECK_THROW((wc::endpoint{std::string("::1\0", 4), 1}), wc::bad_argument);
    BOOST_CHECK_THROW((wc::endpoint{std::string("127.0.0.1\0x", 11), 1}), wc::bad_argument);
    BOOST_CHECK_THROW((wc::endpoint{"host", 65536}), wc::bad_argument);
    BOOST_CHECK_THROW((wc::endpoint{"host", -1}), wc::bad_argument);
}

BOOST_AUTO_TEST_CASE(addresses_resolve_to_themselves) {
    auto const until = deadline::after(10s);
    for (std::string const host :
         {"127.0.0.1", "::1", "0.0.0.0", "::", "192.0.2.77", "2001:db8::7"}) {
        auto const found = wc::resolve({host, 29500}, until);
        BOOST_REQUIRE(found.size() == 1U);
        BOOST_TEST(found.front().host() == host);
        BOOST_TEST(found.front().port() == 29500);
        BOOST_TEST((found.front().at() == wc::endpoint{host, 29500}));
        BOOST_TEST(found.front().is_any() == (host == "0.0.0.0" || host == "::"));
        BOOST_TEST(found.front().is_loopback() == (host == "127.0.0.1" || host == "::1"));
    }
    auto const scoped = wc::resolve({"fe80::1%lo", 1}, until);
    BOOST_REQUIRE(scoped.size() == 1U);
    BOOST_TEST(scoped.front().host() == "fe80::1%lo");
}

BOOST_AUTO_TEST_CASE(localhost_is_loopback_and_unknown_names_say_so) {
    for (auto const& address : wc::resolve({"localhost", 5}, deadline::after(10s))) {
        BOOST_TEST(address.is_loopback());
        BOOST_TEST(address.port() == 5);
    }
    // .invalid never resolves; a machine without a name service may need its time to say so
    BOOST_CHECK_EXCEPTION(wc::resolve({"no-such-host.invalid", 5}, deadline::after(30s)), wc::error,
                          weightcast::test::says("no-such-host.invalid"));
    BOOST_CHECK_EXCEPTION(wc::resolve({"fe80::1%nosuchlink", 5}, deadline::after(10s)),
                          wc::system_failure, weightcast::test::says("nosuchlink"));
}

BOOST_AUTO_TEST_CASE(a_name_service_that_is_late_ends_at_the_deadline) {
    // an expired deadline is the slowest service there is
    BOOST_CHECK_THROW(wc::resolve({"no-such-host.invalid", 5}, deadline::after(-1s)), wc::timeout);
    BOOST_TEST(wc::resolve({"127.0.0.1", 5}, deadline::after(-1s)).size() == 1U);
}

BOOST_AUTO_TEST_CASE(port_0_is_bound_once_and_published) {
    for (std::string const host : {"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"}) {
        wc::listen_socket const listener{wc::endpoint{host, 0}};
        BOOST_TEST(listener.at().port() != 0);
        BOOST_TEST(listener.at().host() == host);
        BOOST_TEST(listener.address().port() == listener.at().port());
        BOOST_CHECK_THROW(wc::listen_socket{listener.at()}, wc::system_failure);
    }
}

BOOST_AUTO_TEST_CASE(a_taken_port_is_refused_at_once_and_by_number) {
    wc::listen_socket const first{"127.0.0.1:0"};
    auto const began = std::chrono::steady_clock::now();
    BOOST_CHECK_EXCEPTION((wc::listen_socket{first.at(), deadline::after(60s)}), wc::system_failure,
                          [&](wc::system_failure const& e) {
                              std::string const text = e.what();
                              return text.find("in use") != std::string::npos &&
                                     text.find(std::to_string(first.at().port())) !=
                                         std::string::npos;
                          });
    BOOST_TEST((std::chrono::steady_clock::now() - began < 10s));
}

BOOST_AUTO_TEST_CASE(a_port_that_is_bound_by_another_without_listening_is_in_use_too) {
    auto const held = wc::detail::new_socket(AF_INET);
    auto address = wc::resolve({"127.0.0.1", 0}, deadline::after(5s)).front();
    wc::detail::set_option(held.value(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    BOOST_REQUIRE(bind(held.value(), address.data(), address.length()) == 0);
    auto const port = wc::detail::socket_address::of_socket(held.value()).port();
    wc::listen_socket const listener{
        wc::endpoint{"127.0.0.1", port}};  // the first to listen has it
    BOOST_TEST(listener.at().port() == port);
    BOOST_TEST(listen(held.value(), 1) != 0);
}

BOOST_AUTO_TEST_CASE(a_port_can_be_bound_again_while_old_connections_close) {
    wc::endpoint at;
    {
        wc::listen_socket listener{"127.0.0.1:0"};
        at = listener.at();
        auto client = wc::detail::connect_until(at, deadline::after(10s));
        wc::detail::wait_for_io(listener.descriptor(), POLLIN, deadline::after(10s));
        auto server = listener.accept();
        BOOST_REQUIRE(static_cast<bool>(server));
        server.reset();  // the server's side closes first: it keeps the port in TIME_WAIT
        char byte = 0;
        wc::detail::wait_for_io(client.value(), POLLIN, deadline::after(10s));
        BOOST_TEST(read(client.value(), &byte, 1) == 0);
    }
    wc::listen_socket const again{at};
    BOOST_TEST((again.at() == at));
}

BOOST_AUTO_TEST_CASE(an_address_of_another_machine_is_named) {
    BOOST_CHECK_EXCEPTION(wc::listen_socket{"198.51.100.7:0"}, wc::system_failure,
                          weightcast::test::says("198.51.100.7 is no address of this machine"));
}

BOOST_AUTO_TEST_CASE(descriptors_are_not_inherited_and_move) {
    wc::listen_socket listener{"127.0.0.1:0"};
    BOOST_TEST((fcntl(listener.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
    int const number = listener.descriptor();
    wc::listen_socket moved{std::move(listener)};
    BOOST_TEST(moved.descriptor() == number);
    BOOST_TEST(!listener);        // the stated moved-from state
    BOOST_TEST(!moved.accept());  // nobody connected; does not block
    auto const client = wc::detail::connect_until(moved.at(), deadline::after(10s));
    BOOST_TEST((fcntl(client.value(), F_GETFD) & FD_CLOEXEC) != 0);
    BOOST_REQUIRE(wc::detail::wait_for_io(moved.descriptor(), POLLIN, deadline::after(10s)));
    auto const accepted = moved.accept();
    BOOST_REQUIRE(static_cast<bool>(accepted));
    BOOST_TEST((fcntl(accepted.value(), F_GETFD) & FD_CLOEXEC) != 0);
}

BOOST_AUTO_TEST_CASE(connecting_waits_for_a_server_that_comes_late) {
    wc::endpoint at;
    { at = wc::listen_socket{"127.0.0.1:0"}.at(); }
    wc::listen_socket late;
    std::thread server{[&] {
        std::this_thread::sleep_for(150ms);
        late = wc::listen_socket{at};
    }};
    auto const connected = wc::detail::connect_until(at, deadline::after(30s));
    server.join();
    BOOST_TEST(static_cast<bool>(connected));
}

BOOST_AUTO_TEST_CASE(connecting_to_nobody_names_host_port_time_and_reason) {
    wc::endpoint at;
    { at = wc::listen_socket{"127.0.0.1:0"}.at(); }
    auto const began = std::chrono::steady_clock::now();
    BOOST_CHECK_EXCEPTION(wc::detail::connect_until(at, deadline::after(300ms)), wc::timeout,
                          [&](wc::timeout const& e) {
                              std::string const text = e.what();
                              return text.find(wc::to_string(at)) != std::string::npos &&
                                     text.find("0.") != std::string::npos &&
                                     text.find("refused") != std::string::npos;
                          });
    BOOST_TEST((std::chrono::steady_clock::now() - began < 10s));
}

BOOST_AUTO_TEST_CASE(a_name_that_does_not_exist_ends_the_attempt_or_its_deadline) {
    BOOST_CHECK_EXCEPTION(
        wc::detail::connect_until({"no-such-host.invalid", 1}, deadline::after(1s)), wc::error,
        weightcast::test::says("no-such-host.invalid"));
}

BOOST_AUTO_TEST_CASE(a_wait_on_a_silent_socket_ends_at_its_deadline) {
    wc::listen_socket const listener{"127.0.0.1:0"};
    BOOST_TEST(!wc::detail::wait_for_io(listener.descriptor(), POLLIN, deadline::after(30ms)));
    BOOST_TEST(!wc::detail::wait_for_io(listener.descriptor(), POLLIN, deadline::after(-1s)));
}

BOOST_AUTO_TEST_CASE(mapped_addresses_print_and_classify_as_what_they_are) {
    wc::listen_socket const listener{"[::]:0"};  // takes both families
    auto const client =
        wc::detail::connect_until({"127.0.0.1", listener.at().port()}, deadline::after(10s));
    BOOST_REQUIRE(wc::detail::wait_for_io(listener.descriptor(), POLLIN, deadline::after(10s)));
    auto const accepted = listener.accept();
    auto const peer = wc::detail::socket_address::of_peer(accepted.value());
    BOOST_TEST(peer.host() == "127.0.0.1");
    BOOST_TEST(peer.is_loopback());
}

BOOST_AUTO_TEST_SUITE_END()
