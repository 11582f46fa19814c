// SPDX-License-Identifier: Apache-2.0
// A predicate for BOOST_CHECK_EXCEPTION: the message has these words, and is one line.
#pragma once

#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace weightcast::test {

/// True for an exception whose message contains every one of the words and has no line break.
class says {
  public:
    says(std::initializer_list<std::string_view> words) : words_{words.begin(), words.end()} {}
    explicit says(std::string_view words) : words_{std::string{words}} {}

    bool operator()(std::exception const& e) const {
        std::string_view const message = e.what();
        bool complete = message.find('\n') == std::string_view::npos;
        for (auto const& word : words_) {
            complete = complete && message.find(word) != std::string_view::npos;
        }
        if (!complete) BOOST_TEST_MESSAGE("the message is: " << message);
        return complete;
    }

  private:
    std::vector<std::string> words_;
};

}  // namespace weightcast::test
