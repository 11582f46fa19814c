// SPDX-License-Identifier: Apache-2.0
#pragma once
// Our rendezvous in the form that Gloo asks for: every wait has our deadline, and ends when the group fails.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gloo/rendezvous/store.h>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/gloo_watch.hpp>
#include <weightcast/comm/rendezvous_client.hpp>

namespace weightcast::detail {

/// Keys of one context of one generation of a group. Refers to the client and the watch.
class gloo_store final : public gloo::rendezvous::Store {
  public:
    gloo_store(rendezvous_client& client, gloo_watch& watch, std::string prefix, deadline until)
        : client_{client}, watch_{watch}, prefix_{std::move(prefix)}, until_{until} {}

    void set(std::string const& key, std::vector<char> const& data) override {
        client_.set(prefix_ + key, {data.data(), data.size()}, until_);
    }
    std::vector<char> get(std::string const& key) override {
        wait({key});
        auto const value = client_.get(prefix_ + key, until_);
        return {value.begin(), value.end()};
    }
    void wait(std::vector<std::string> const& keys) override {
        std::vector<std::string> full;
        for (auto const& key : keys) full.push_back(prefix_ + key);
        for (;;) {
            watch_.throw_if_stopped();
            auto const slice = earlier(until_, deadline::after(std::chrono::milliseconds{500}));
            try {
                return client_.wait(full, slice);
            } catch (timeout const&) {
                if (until_.expired()) throw;
            }
        }
    }
    void wait(std::vector<std::string> const& keys, std::chrono::milliseconds const&) override {
        wait(keys);  // our deadline is the nearer one
    }

  private:
    rendezvous_client& client_;
    gloo_watch& watch_;
    std::string prefix_;
    deadline until_;
};

}  // namespace weightcast::detail
