// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/stream_sync_scope.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;
using scope_type = stream_sync_scope<runtime>;

static_assert(!std::is_copy_constructible_v<scope_type>);
static_assert(!std::is_move_constructible_v<scope_type>);
static_assert(!std::is_default_constructible_v<scope_type>);
static_assert(std::is_nothrow_destructible_v<scope_type>);

/// Tells when it goes, and whether the work was done by then.
class witness {
  public:
    witness(std::vector<int>& gone, int number) : gone_{&gone}, number_{number} {}
    witness(witness&& other) noexcept
        : gone_{std::exchange(other.gone_, nullptr)}, number_{other.number_} {}
    ~witness() {
        if (gone_ != nullptr) gone_->push_back(number_);
    }

  private:
    std::vector<int>* gone_;
    int number_;
};

BOOST_AUTO_TEST_SUITE(stream_sync_scope_suite)

BOOST_AUTO_TEST_CASE(leaving_waits_for_the_work) {
    stream<runtime> const s{host0};
    std::uint32_t written = 0;
    {
        scope_type const scope{s.ref()};
        runtime::enqueue(s, [&written]() noexcept {
            std::this_thread::sleep_for(20ms);
            written = 1;
        });
    }
    BOOST_TEST(written == 1U);
}

BOOST_AUTO_TEST_CASE(leaving_by_an_exception_waits_too) {
    stream<runtime> const s{host0};
    std::vector<int> gone;
    std::uint32_t written = 0;
    try {
        scope_type scope{s.ref()};
        scope.keep(witness{gone, 1});
        runtime::enqueue(s, [&written]() noexcept {
            std::this_thread::sleep_for(20ms);
            written = 1;
        });
        throw std::runtime_error{"elsewhere"};
    } catch (std::runtime_error const&) {}
    BOOST_TEST(written == 1U);
    BOOST_TEST((gone == std::vector<int>{1}));
}

BOOST_AUTO_TEST_CASE(what_is_kept_goes_in_reverse_once_the_work_is_done) {
    stream<runtime> const s{host0};
    std::vector<int> gone;
    scope_type scope{s.ref()};
    auto& text = scope.keep(std::string(100, 'x'));
    runtime::enqueue(s, [&text]() noexcept { text[0] = 'y'; });
    scope.keep(witness{gone, 1});
    scope.keep(witness{gone, 2});
    scope.keep(std::make_unique<int>(3));
    BOOST_TEST(gone.empty());
    scope.wait(soon());
    BOOST_TEST((gone == std::vector<int>{2, 1}));
    scope.keep(witness{gone, 3});  // the scope goes on
    scope.wait(soon());
    BOOST_TEST((gone == std::vector<int>{2, 1, 3}));
}

BOOST_AUTO_TEST_CASE(a_deadline_that_passes_keeps_everything) {
    stream<runtime> const s{host0};
    stream_blocker<runtime> blocker{s.ref()};
    std::vector<int> gone;
    scope_type scope{s.ref()};
    scope.keep(witness{gone, 1});
    BOOST_CHECK_EXCEPTION(scope.wait(at_once()), timeout, says({"1 streams", "kept"}));
    BOOST_TEST(gone.empty());
    blocker.open();
    scope.wait(soon());
    BOOST_TEST(gone.size() == 1U);
}

BOOST_AUTO_TEST_CASE(each_stream_of_the_scope_counts) {
    stream<runtime> const first{host0};
    stream<runtime> const second{host1};
    stream_blocker<runtime> blocker{second.ref()};
    std::vector<int> gone;
    scope_type scope{first.ref()};
    scope.add(second.ref());
    scope.add(second.ref());
    scope.keep(witness{gone, 1});
    BOOST_CHECK_EXCEPTION(scope.wait(at_once()), timeout, says("2 streams"));
    BOOST_TEST(gone.empty());
    blocker.open();
    scope.wait(soon());
    BOOST_TEST(gone.size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_not_proven_at_the_end_is_left_behind_and_said) {
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
    stream<runtime> const s{host0};
    static std::vector<int> gone;  // the witness is never freed
    auto const before = scope_type::left_behind();
    {
        stream_blocker<runtime> blocker{s.ref()};
        auto const begin = std::chrono::steady_clock::now();
        {
            scope_type scope{s.ref(), 30ms};
            scope.keep(witness{gone, 1});
            scope.keep(witness{gone, 2});
        }
        BOOST_TEST((std::chrono::steady_clock::now() - begin >= 30ms));
        BOOST_TEST(gone.empty());
        BOOST_TEST(scope_type::left_behind() == before + 2);
        BOOST_REQUIRE(lines.size() == 1U);
        BOOST_TEST(lines[0].find("2 resources are left behind") != std::string::npos);
        BOOST_TEST(lines[0].find("30 ms") != std::string::npos);
        scope_type const with_nothing_kept{s.ref(), 1ms};
    }
    BOOST_TEST(lines.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_gone_proves_nothing) {
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
    static std::vector<int> gone;
    {
        auto s = std::make_unique<stream<runtime>>(host0);
        scope_type scope{s->ref(), 1ms};
        scope.keep(witness{gone, 1});
        s.reset();
        BOOST_CHECK_EXCEPTION(scope.wait(soon()), contract_violation,
                              says("this stream was destroyed"));
    }
    BOOST_TEST(gone.empty());
    BOOST_TEST(lines.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
