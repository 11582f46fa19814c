// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// What a fleet's trainer and members leave for each other at the rendezvous: messages, and the keys they lie under.

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/wire.hpp>
#include <weightcast/comm/rendezvous_client.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/session/fleet.hpp>

namespace weightcast::detail {

/// Names one process at a time: an id that comes back with another token was restarted.
using fleet_token = std::uint64_t;

inline fleet_token new_fleet_token() {
    std::random_device source;
    auto const high = static_cast<std::uint64_t>(source());
    return (high << 32U) | source();
}

/// @throws bad_argument  for what cannot be an id
inline void check_member_id(std::string_view id) {
    if (!id.empty() && id.size() <= 256) return;
    throw bad_argument{"fleet: an id of " + std::to_string(id.size()) +
                       " bytes; expected from 1 to 256"};
}

inline void write(message_writer& to, weight_version const& version) {
    to.number(version.number).number(std::uint8_t{version.label.has_value()});
    to.text(version.label.value_or(""));
}
inline weight_version read_version(message_reader& from) {
    weight_version version{.number = from.number<std::uint64_t>()};
    bool const labelled = from.number<std::uint8_t>() != 0;
    auto label = from.text(limits_on_messages.text);
    if (labelled) version.label = std::move(label);
    return version;
}

/// A member says that it waits for a generation, or that it leaves the fleet.
struct fleet_message {
    bool leaves = false;
    fleet_token token = 0;
    std::string id{};
    weight_version held{};
    fleet_token held_from = 0;  ///< the trainer that sent it that version

    std::string bytes() const {
        message_writer to;
        to.number(std::uint8_t{leaves}).number(token).text(id).number(held_from);
        write(to, held);
        return std::move(to).bytes();
    }
    /// @throws bad_input
    static fleet_message read(std::string_view bytes) {
        message_reader from{bytes};
        fleet_message one;
        one.leaves = from.number<std::uint8_t>() != 0;
        one.token = from.number<fleet_token>();
        one.id = from.text(256);
        one.held_from = from.number<fleet_token>();
        one.held = read_version(from);
        from.expect_end();
        return one;
    }
};

/// A member says how an update ended for it.
struct fleet_report {
    std::uint64_t generation = 0;
    std::uint64_t update = 0;  ///< of that generation, from 0
    member_status status = member_status::unknown;
    weight_version held{};
    std::string message{};

    std::string bytes() const {
        message_writer to;
        to.number(generation).number(update).number(static_cast<std::uint8_t>(status));
        write(to, held);
        to.text(std::string_view{message}.substr(0, limits_on_messages.text));
        return std::move(to).bytes();
    }
    static fleet_report read(std::string_view bytes) {
        message_reader from{bytes};
        fleet_report one;
        one.generation = from.number<std::uint64_t>();
        one.update = from.number<std::uint64_t>();
        one.status = static_cast<member_status>(from.number_below<std::uint8_t>(8, "status"));
        one.held = read_version(from);
        one.message = from.text(limits_on_messages.text);
        return one;
    }
};

/// The trainer says who is in a generation, in rank order from rank 1.
struct fleet_generation {
    fleet_token trainer = 0;
    std::vector<std::pair<fleet_token, std::string>> members{};

    std::string bytes() const {
        message_writer to;
        to.number(trainer).number(static_cast<std::uint32_t>(members.size()));
        for (auto const& [token, id] : members) to.number(token).text(id);
        return std::move(to).bytes();
    }
    static fleet_generation read(std::string_view bytes) {
        message_reader from{bytes};
        fleet_generation one{.trainer = from.number<fleet_token>()};
        for (auto left = from.number_below<std::uint32_t>(65536, "size"); left > 0; --left) {
            auto const token = from.number<fleet_token>();
            one.members.emplace_back(token, from.text(256));
        }
        return one;
    }
    /// 0: it is not in it.
    int rank_of(fleet_token token) const noexcept {
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (members[i].first == token) return static_cast<int>(i) + 1;
        }
        return 0;
    }
};

/// A fleet's keys. A connection that breaks is made anew. Of one thread.
/// Keys: a queue to the trainer, whose messages it erases; the current generation; three a member, overwritten.
class fleet_board {
  public:
    fleet_board(fleet_place const& place, std::chrono::milliseconds answer)
        : at_{place.at}, prefix_{"fleet/" + place.name + "/"}, answer_{answer} {
        if (place.name.empty() || place.name.size() > 128) {
            throw bad_argument{"fleet: a name of " + std::to_string(place.name.size()) +
                               " bytes; expected from 1 to 128"};
        }
        if (at_.empty()) throw bad_argument{"fleet: `at`, where it meets, is not set"};
    }

    std::string trainer_key() const { return prefix_ + "trainer"; }
    std::string counter_key() const { return prefix_ + "generations"; }
    std::string queue_key() const { return prefix_ + "queue"; }
    std::string taken_key() const { return prefix_ + "taken"; }
    std::string message_key(std::int64_t n) const { return queue_key() + "/" + std::to_string(n); }
    std::string generation_key(std::uint64_t g) const {
        return prefix_ + "generation/" + std::to_string(g);
    }
    std::string call_key(fleet_token member) const { return of(member, "call"); }
    std::string here_key(fleet_token member) const { return of(member, "here"); }
    std::string report_key(fleet_token member) const { return of(member, "report"); }
    endpoint const& at() const noexcept { return at_; }
    std::chrono::milliseconds answer() const noexcept { return answer_; }

    // Each waits for the answer limit at most, and no longer than `until`.
    /// @throws timeout  when the server does not answer
    void set(std::string const& key, std::string_view value, deadline until) {
        ask(until, [&](rendezvous_client& c, deadline d) { return c.set(key, value, d), true; });
    }
    std::optional<std::string> find(std::string const& key, deadline until) {
        return ask(until, [&](rendezvous_client& c, deadline d) { return c.find(key, d); });
    }
    std::int64_t add(std::string const& key, std::int64_t delta, deadline until) {
        return ask(until, [&](rendezvous_client& c, deadline d) { return c.add(key, delta, d); });
    }
    void erase(std::string const& key, deadline until) {
        ask(until, [&](rendezvous_client& c, deadline d) { return c.erase(key, d); });
    }
    std::int64_t number(std::string const& key, deadline until) {
        auto const text = find(key, until).value_or("0");
        std::int64_t value = 0;
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
    }
    /// The value, once the key exists; nothing when it does not by then.
    std::optional<std::string> await(std::string const& key, deadline until) {
        if (auto value = find(key, deadline::after(answer_))) return value;
        if (until.expired()) return std::nullopt;
        try {
            connected(until).wait({key}, until);
        } catch (timeout const&) {
            return std::nullopt;
        } catch (peer_error const&) {  // the server went: whoever waits looks again
            client_.reset();
            std::this_thread::sleep_for(pause);
            return std::nullopt;
        }
        return find(key, deadline::after(answer_));
    }
    /// Tells the trainer.
    void post(fleet_message const& message, deadline until) {
        auto const n = add(queue_key(), 1, until);
        set(message_key(n), message.bytes(), until);
    }
    /// What a member left is erased.
    void forget(fleet_token member, deadline until) {
        for (auto const& key : {call_key(member), here_key(member), report_key(member)})
            erase(key, until);
    }

  private:
    static constexpr std::chrono::milliseconds pause{50};

    std::string of(fleet_token member, char const* what) const {
        return prefix_ + "member/" + std::to_string(member) + "/" + what;
    }
    rendezvous_client& connected(deadline until) {
        if (client_ && client_->lost()) client_.reset();
        if (!client_) client_ = std::make_unique<rendezvous_client>(at_, until);
        return *client_;
    }
    template <class F>
    std::invoke_result_t<F const&, rendezvous_client&, deadline> ask(deadline until,
                                                                     F const& request) {
        auto const limit = earlier(until, deadline::after(answer_));
        for (;;) {
            try {
                return request(connected(limit), limit);
            } catch (peer_error const&) {
                client_.reset();
                if (limit.expired()) throw;
                std::this_thread::sleep_for(pause);
            }
        }
    }

    endpoint at_;
    std::string prefix_;
    std::chrono::milliseconds answer_;
    std::unique_ptr<rendezvous_client> client_;
};

}  // namespace weightcast::detail
