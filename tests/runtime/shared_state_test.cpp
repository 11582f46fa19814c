// SPDX-License-Identifier: Apache-2.0
// Shared libraries of one process share the state of host_runtime, or are told that they do not.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

/// A library of tests/runtime/shared/, loaded so that it lends its symbols to no one.
class shared_library {
  public:
    explicit shared_library(std::string const& name)
        : path_{path_of(name)}, handle_{::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)} {
        BOOST_TEST_REQUIRE(handle_ != nullptr, path_);
    }
    shared_library(shared_library&&) = delete;
    ~shared_library() { ::dlclose(handle_); }

    template <class Function>
    Function* find(char const* name) const {
        auto* const found = ::dlsym(handle_, name);
        BOOST_TEST_REQUIRE(found != nullptr, name);
        return reinterpret_cast<Function*>(found);
    }
    void const* state() const { return find<void const*()>("shared_state")(); }

    /// Is it in memory, whether anyone holds it or not?
    static bool is_loaded(std::string const& name) {
        void* const handle = ::dlopen(path_of(name).c_str(), RTLD_NOW | RTLD_NOLOAD);
        return handle != nullptr && ::dlclose(handle) == 0;
    }

  private:
    static std::string path_of(std::string const& name) {
        char const* const folder = std::getenv("WEIGHTCAST_TEST_SHARED");
        BOOST_TEST_REQUIRE(folder != nullptr, "WEIGHTCAST_TEST_SHARED names no folder");
        return std::string{folder} + "/" + name + ".so";
    }
    std::string path_;
    void* handle_;
};

using begin_function = void(std::uint32_t*, void**, void**);
using end_function = int(std::uint32_t*, void*, void*, char*, std::size_t);

/// What comes of a stream that one library makes and another uses.
struct outcome {
    int code;
    std::uint32_t word;
    std::string sentence;
};
outcome pass_on(shared_library const& from, shared_library const& to) {
    static std::uint32_t word;  // an operation may still write it when a test has failed
    word = 0;
    void* stream = nullptr;
    void* event = nullptr;
    from.find<begin_function>("shared_begin")(&word, &stream, &event);
    std::array<char, 1000> sentence{};
    auto const code =
        to.find<end_function>("shared_end")(&word, stream, event, sentence.data(), sentence.size());
    if (code != 0) {  // its own library ends it
        std::array<char, 1000> ignored{};
        BOOST_TEST(from.find<end_function>("shared_end")(&word, stream, event, ignored.data(),
                                                         ignored.size()) == 0,
                   ignored.data());
    }
    return {code, word, sentence.data()};
}

void check_shared_or_told(outcome const& seen, bool one_state) {
    BOOST_TEST(seen.word == 8U);
    if (one_state) {
        BOOST_TEST(seen.code == 0);
        BOOST_TEST(seen.sentence == "");
    } else {
        BOOST_TEST(seen.code == 1);
        BOOST_TEST(seen.sentence.find("another copy of host_runtime's state") != std::string::npos,
                   seen.sentence);
    }
}

BOOST_AUTO_TEST_SUITE(shared_state_suite)

BOOST_AUTO_TEST_CASE(two_libraries_with_hidden_symbols_share_one_state_or_are_told) {
    shared_library const one{"hidden_one"};
    shared_library const two{"hidden_two"};
    bool const one_state = one.state() == two.state();
    BOOST_TEST_MESSAGE("one state: " << one_state);
    check_shared_or_told(pass_on(one, two), one_state);
    check_shared_or_told(pass_on(two, one), one_state);
#if defined(__GNUC__) && !defined(__clang__)
    BOOST_TEST(one_state);  // g++ marks it unique in the process, whatever way a library is loaded
#endif
}

BOOST_AUTO_TEST_CASE(a_library_with_a_copy_of_its_own_is_told) {
    shared_library const one{"hidden_one"};
    shared_library const other{"second_copy"};
    BOOST_TEST(one.state() != other.state());
    check_shared_or_told(pass_on(one, other), false);
    check_shared_or_told(pass_on(other, one), false);
}

BOOST_AUTO_TEST_CASE(the_programs_own_streams_are_no_exception) {
    for (auto const* name : {"hidden_one", "second_copy"}) {
        shared_library const library{name};
        static std::uint32_t word;
        word = 7;
        stream<runtime> s{host0};
        event<runtime> e{s.ref()};
        std::array<char, 1000> sentence{};
        auto const code = library.find<end_function>("shared_end")(
            &word, s.native_handle(), e.native_handle(), sentence.data(), sentence.size());
        // a program shares its state with what it loads when it is linked with -rdynamic
        bool const one_state = library.state() == &detail::shared_host_state();
        if (one_state) {
            static_cast<void>(s.release());
            static_cast<void>(e.release());
        } else {
            word += 1;
            BOOST_TEST(e.wait(soon()));
        }
        check_shared_or_told({code, word, sentence.data()}, one_state);
    }
}

BOOST_AUTO_TEST_CASE(a_library_that_is_closed_leaves_its_threads_their_code) {
    // hidden_two shares the state of hidden_one, but the operations that it queues run its own code
    for (auto const* name : {"hidden_one", "hidden_two", "second_copy"}) {
        for (int i = 0; i < 3; ++i) {
            {
                shared_library const library{name};
                std::uint32_t word = 0;
                void* stream = nullptr;
                void* event = nullptr;
                library.find<begin_function>("shared_begin")(&word, &stream, &event);
                std::array<char, 1000> sentence{};
                auto const code = library.find<end_function>("shared_end")(
                    &word, stream, event, sentence.data(), sentence.size());
                BOOST_TEST(code == 0, sentence.data());
                BOOST_TEST(word == 8U);
            }
            BOOST_TEST(shared_library::is_loaded(name), name);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
