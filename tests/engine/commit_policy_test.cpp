// SPDX-License-Identifier: Apache-2.0
// What readers see while updates come: under in_place, and under shadow; and what an engine does around an update.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_model.hpp>
#include <weightcast/model/serving_hooks.hpp>
#include <weightcast/model/shadow.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/model/weight_snapshot.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using shadow_tables = parameter_tables<host_runtime, shadow>;

std::vector<tensor_spec> const specs{{"embed", dtype::float32, {40, 16}},
                                     {"layers.0.w", dtype::float32, {16, 16}},
                                     {"layers.1.w", dtype::float32, {16, 16}},
                                     {"head", dtype::float32, {16}}};

/// A model in which every element of version v is v.
class uniform_model {
  public:
    explicit uniform_model(device where = cpu_device) : model_{where, specs, 0} {}
    void fill(float value) {
        for (std::size_t i = 0; i < model_.size(); ++i) {
            std::vector<float> const elements(model_.memory(i).size() / 4, value);
            contents bytes(model_.memory(i).size());
            std::memcpy(bytes.data(), elements.data(), bytes.size());
            model_.memory(i).write(bytes);
        }
    }
    test_model& model() noexcept { return model_; }

  private:
    test_model model_;
};

/// Goes through all weights, as a forward pass does. @returns "" when every one is of the snapshot's version
template <class Snapshot>
std::string mixed_weights(Snapshot const& snapshot) {
    auto const expected = static_cast<float>(snapshot.version().number);
    for (auto const& s : specs) {
        auto const tensor = snapshot.tensor(s.name);
        auto const* element = static_cast<float const*>(tensor.data());
        float sum = 0;
        for (std::uint64_t i = 0; i < element_count(s.shape); ++i) sum += element[i] - expected;
        if (sum != 0) return "'" + s.name + "' is not of version " + std::to_string(expected);
    }
    return "";
}

/// A trainer and a receiver that holds `Tables`. The receiver's function gets a worker in its group.
template <class Tables>
struct pair_of {
    using engine = dense_engine<local_communicator, Tables>;
    using worker = weight_worker<engine>;
    using sender = weight_sender<dense_trainer<local_communicator>>;
    device where = cpu_device;
    transfer_limits limits = patient_limits();

    std::vector<std::string> run(std::function<std::string(sender&)> const& send,
                                 std::function<std::string(worker&, Tables&)> const& receive) {
        local_group const group_of_two{2, {.where = {where}, .grace = 10s}};
        return run_threads(
            {[&] {
                 sender trainer{dense_trainer<local_communicator>{
                                    joins(group_of_two), {.packing = {.chunk_bytes = 512}}, limits},
                                {place(0, 2)}};
                 return send(trainer);
             },
             [&] {
                 Tables tables;
                 worker receiver{engine{joins(group_of_two), tables, limits}, place(1, 2)};
                 return receive(receiver, tables);
             }});
    }
};

std::string send_versions(weight_sender<dense_trainer<local_communicator>>& trainer, int first,
                          int last, update_options const& options = {}) {
    for (int v = first; v <= last; ++v) {
        uniform_model sent;
        sent.fill(static_cast<float>(v));
        auto source = sent.model().source();
        auto const result = trainer.update(source, options);
        if (!result.ok()) return result.groups.at(0).message;
    }
    return "";
}

BOOST_AUTO_TEST_SUITE(commit_policies)

BOOST_AUTO_TEST_CASE(b77_under_shadow_readers_never_see_a_mix_and_sets_alternate) {
    constexpr int updates = 20;
    check_ranks(pair_of<shadow_tables>{}.run(
                    [](auto& trainer) { return send_versions(trainer, 1, updates); },
                    [](auto& worker, auto& tables) -> std::string {
                        uniform_model held;
                        held.model().add_to(tables.main());
                        held.fill(0);
                        std::atomic<bool> over{false};
                        std::vector<std::string> wrong(3);
                        std::set<void const*> addresses;
                        std::atomic<std::uint64_t> passes{0};
                        {
                            std::vector<std::jthread> readers;
                            for (std::size_t r = 0; r < wrong.size(); ++r) {
                                readers.emplace_back([&, r] {
                                    std::uint64_t last = 0;
                                    while (!over && wrong[r].empty()) {
                                        auto const snapshot = tables.snapshot(deadline::after(60s));
                                        wrong[r] = mixed_weights(snapshot);
                                        if (snapshot.version().number < last)
                                            wrong[r] = "went back";
                                        last = snapshot.version().number;
                                        ++passes;
                                    }
                                });
                            }
                            for (int v = 1; v <= updates; ++v) {
                                auto const report = worker.serve_one();
                                auto const now = tables.snapshot(deadline::after(60s));
                                addresses.insert(now.tensor("head").data());
                                if (now.version() != report.version) wrong[0] = "another version";
                            }
                            over = true;
                        }
                        for (auto const& text : wrong) {
                            if (!text.empty()) return text;
                        }
                        if (addresses.size() != 2)
                            return std::to_string(addresses.size()) + " addresses";
                        return passes > 0 ? "" : "nobody read";
                    }),
                "shadow");
}

BOOST_AUTO_TEST_CASE(under_shadow_a_failed_update_leaves_the_old_version) {
    check_ranks(
        pair_of<shadow_tables>{}.run(
            [](auto& trainer) -> std::string {
                if (auto said = send_versions(trainer, 1, 1); !said.empty()) return said;
                if (send_versions(trainer, 2, 2).find("refused") == std::string::npos)
                    return "it was not refused";
                return send_versions(trainer, 3, 3);
            },
            [](auto& worker, auto& tables) -> std::string {
                uniform_model held;
                held.model().add_to(tables.main());
                bool fails = false;
                tables.main().add_layer(
                    {.name = "layers.1", .after = {"layers.1.w"}, .run = [&](auto const&, auto) {
                         if (fails) throw std::runtime_error{"on purpose"};
                     }});
                static_cast<void>(worker.serve_one());
                fails = true;
                auto const message = message_of([&] { static_cast<void>(worker.serve_one()); });
                if (message.find("on purpose") == std::string::npos) return message;
                fails = false;
                if (tables.mixed()) return "mixed";
                {
                    auto const old = tables.snapshot(deadline::after(1s));
                    if (old.version().number != 1) return "another version is served";
                    if (auto wrong = mixed_weights(old); !wrong.empty()) return wrong;
                }
                static_cast<void>(worker.serve_one());
                return mixed_weights(tables.snapshot(deadline::after(1s)));
            }),
        "failed");
}

BOOST_AUTO_TEST_CASE(under_shadow_a_partial_update_keeps_the_rest_of_the_version_before) {
    std::vector<tensor_spec> const one{{"a", dtype::float32, {4, 2}}};
    std::vector<tensor_spec> const two{{"a", dtype::float32, {4, 2}}, {"b", dtype::float32, {3}}};
    for (auto const where : {cpu_device, host1}) {
        pair_of<shadow_tables> both;
        both.where = where;
        check_ranks(
            both.run(
                [&](auto& trainer) -> std::string {
                    for (int round = 0; round < 4; ++round) {
                        test_model const sent{cpu_device, round % 2 == 0 ? two : one,
                                              10 + static_cast<std::uint64_t>(round)};
                        auto source = sent.source();
                        auto const result =
                            trainer.update(source, {.coverage = update_coverage::partial});
                        if (!result.ok()) return result.groups.at(0).message;
                    }
                    return "";
                },
                [&](auto& worker, auto& tables) -> std::string {
                    // rows of padding belong to nobody, and stay in both sets
                    placed_bytes a{where, contents(6 * 2 * 4, std::byte{0x11})};
                    placed_bytes b{where, contents(3 * 4)};
                    tables.main().add(
                        "a.padded",
                        layouts::padded(layouts::whole({"a", dtype::float32, {4, 2}}), 0, 6),
                        tensor_view<>{a.data(), dtype::float32, {6, 2}, where});
                    tables.main().add("b", tensor_view<>{b.data(), dtype::float32, {3}, where});
                    contents last_b;
                    for (int round = 0; round < 4; ++round) {
                        static_cast<void>(worker.serve_one());
                        test_model const sent{cpu_device, two,
                                              10 + static_cast<std::uint64_t>(round)};
                        if (round % 2 == 0) last_b = sent.values()[1];
                        auto const now = tables.snapshot(deadline::after(1s));
                        auto const held_a = gathered(now.tensor("a.padded"));
                        auto expected = sent.values()[0];
                        expected.resize(6 * 2 * 4, std::byte{0x11});
                        if (held_a != expected) return "a, round " + std::to_string(round);
                        if (gathered(now.tensor("b")) != last_b)
                            return "b, round " + std::to_string(round);
                    }
                    return "";
                }),
            to_string(where));
    }
}

BOOST_AUTO_TEST_CASE(an_update_is_refused_while_readers_hold_what_it_would_write) {
    auto const refused = [](auto& trainer, int version) {
        auto const message = send_versions(trainer, version, version);
        return message.find("refused by rank 1") != std::string::npos &&
               message.find("1 snapshots still read") != std::string::npos;
    };
    check_ranks(pair_of<parameter_tables<>>{}.run(
                    [&](auto& trainer) -> std::string {
                        if (!refused(trainer, 1)) return "it was not refused";
                        return send_versions(trainer, 2, 2);
                    },
                    [](auto& worker, auto& tables) -> std::string {
                        uniform_model held;
                        held.model().add_to(tables.main());
                        tables.reader_limit(50ms);
                        {
                            auto const reader = tables.snapshot(deadline::after(1s));
                            auto const message =
                                message_of([&] { static_cast<void>(worker.serve_one()); });
                            if (message.empty()) return "it was not refused";
                            if (auto wrong = mixed_weights(reader); !wrong.empty()) return wrong;
                        }
                        static_cast<void>(worker.serve_one());
                        return mixed_weights(tables.snapshot(deadline::after(1s)));
                    }),
                "in_place");
    // under shadow a reader may hold one version back, not two
    check_ranks(pair_of<shadow_tables>{}.run(
                    [&](auto& trainer) -> std::string {
                        if (auto said = send_versions(trainer, 1, 1); !said.empty()) return said;
                        return refused(trainer, 2) ? "" : "it was not refused";
                    },
                    [](auto& worker, auto& tables) -> std::string {
                        uniform_model held;
                        held.model().add_to(tables.main());
                        tables.reader_limit(50ms);
                        auto const reader = tables.snapshot(deadline::after(1s));
                        static_cast<void>(worker.serve_one());
                        auto const message =
                            message_of([&] { static_cast<void>(worker.serve_one()); });
                        if (message.empty()) return "it was not refused";
                        return mixed_weights(reader);
                    }),
                "shadow");
}

BOOST_AUTO_TEST_CASE(b77_a_mixed_target_gives_no_snapshot_and_names_what_was_written) {
    check_ranks(
        pair_of<parameter_tables<>>{}.run(
            [](auto& trainer) -> std::string {
                if (send_versions(trainer, 1, 1).empty()) return "it passed";
                return send_versions(trainer, 2, 2);
            },
            [](auto& worker, auto& tables) -> std::string {
                uniform_model held;
                held.model().add_to(tables.main());
                bool fails = true;
                tables.main().add_layer(
                    {.name = "layers.0", .after = {"layers.0.w"}, .run = [&](auto const&, auto) {
                         if (fails) throw std::runtime_error{"on purpose"};
                     }});
                if (message_of([&] { static_cast<void>(worker.serve_one()); }).empty())
                    return "it passed";
                fails = false;
                if (!tables.mixed()) return "not mixed";
                auto written = tables.written();
                std::sort(written.begin(), written.end());
                if (written !=
                    std::vector<std::string>{"embed", "head", "layers.0.w", "layers.1.w"})
                    return "other names";
                auto const none =
                    message_of([&] { static_cast<void>(tables.snapshot(deadline::after(10ms))); });
                if (none.find("mixed") == std::string::npos) return none;
                static_cast<void>(worker.serve_one());
                if (!tables.written().empty()) return "names are left";
                return mixed_weights(tables.snapshot(deadline::after(1s)));
            }),
        "mixed");
}

/// Hooks that write down when they are called.
struct recorded_hooks {
    std::vector<std::string> calls;
    std::string failing;
    serving_hooks hooks() {
        auto const note = [this](std::string name) {
            return [this, name](target_id const& id) {
                calls.push_back(name + " " + to_string(id));
                if (name == failing) throw std::runtime_error{"the cache is busy"};
            };
        };
        return {note("pause"), note("invalidate"), note("resume")};
    }
    std::string taken() {
        std::string all;
        for (auto const& c : calls) all += (all.empty() ? "" : ", ") + c;
        calls.clear();
        return all;
    }
};

BOOST_AUTO_TEST_CASE(b87_caches_are_invalidated_once_a_commit_and_before_readers_resume) {
    check_ranks(
        pair_of<parameter_tables<>>{}.run(
            [](auto& trainer) -> std::string {
                if (auto said = send_versions(trainer, 1, 1); !said.empty()) return said;
                if (send_versions(trainer, 2, 2).empty()) return "it passed";
                if (auto said = send_versions(trainer, 3, 3); !said.empty()) return said;
                table_source<> empty;
                if (trainer.update(empty).status != update_status::nothing_updated)
                    return "it updated something";
                // the empty one was version 4
                return send_versions(trainer, 5, 7);
            },
            [](auto& worker, auto& tables) -> std::string {
                uniform_model held;
                held.model().add_to(tables.main());
                recorded_hooks recorded;
                tables.hooks(recorded.hooks());
                bool fails = false;
                tables.main().add_layer(
                    {.name = "layers.0", .after = {"layers.0.w"}, .run = [&](auto const&, auto) {
                         if (fails) throw std::runtime_error{"on purpose"};
                     }});
                auto const serve = [&] {
                    return message_of([&] { static_cast<void>(worker.serve_one()); });
                };
                serve();
                auto calls = recorded.taken();
                if (calls != "pause main, invalidate main, resume main") return "1: " + calls;
                fails = true;
                serve();
                fails = false;
                calls = recorded.taken();  // a mixed target is not served
                if (calls != "pause main, invalidate main") return "2: " + calls;
                serve();
                calls = recorded.taken();
                if (calls != "pause main, invalidate main, resume main") return "3: " + calls;
                serve();  // an empty update
                calls = recorded.taken();
                if (calls != "pause main, resume main") return "empty: " + calls;
                recorded.failing = "pause";
                tables.relabel("step-3");  // a label triggers nothing
                if (!recorded.taken().empty()) return "a label called a hook";
                if (to_string(tables.version()) != "step-3") return "no label";
                recorded.failing = "invalidate";
                auto const failed = serve();
                if (failed.find("is published, but hook 'invalidate' failed: the cache is busy") ==
                    std::string::npos)
                    return failed;
                calls = recorded.taken();
                if (calls != "pause main, invalidate main") return "4: " + calls;
                auto const stale =
                    message_of([&] { static_cast<void>(tables.snapshot(deadline::after(10ms))); });
                if (stale.find("caches") == std::string::npos) return "5: " + stale;
                recorded.failing = "";
                if (auto said = serve(); !said.empty()) return said;
                if (auto said = serve(); !said.empty()) return said;
                return mixed_weights(tables.snapshot(deadline::after(1s)));
            }),
        "hooks");
}

BOOST_AUTO_TEST_CASE(a_pause_that_fails_refuses_the_update) {
    check_ranks(pair_of<parameter_tables<>>{}.run(
                    [](auto& trainer) -> std::string {
                        auto const said = send_versions(trainer, 1, 1);
                        if (said.find("the cache is busy") == std::string::npos) return said;
                        return send_versions(trainer, 2, 2);
                    },
                    [](auto& worker, auto& tables) -> std::string {
                        uniform_model held;
                        held.model().add_to(tables.main());
                        recorded_hooks recorded;
                        recorded.failing = "pause";
                        tables.hooks(recorded.hooks());
                        if (message_of([&] { static_cast<void>(worker.serve_one()); }).empty())
                            return "it passed";
                        if (tables.mixed()) return "mixed";
                        recorded.failing = "";
                        static_cast<void>(worker.serve_one());
                        return mixed_weights(tables.snapshot(deadline::after(1s)));
                    }),
                "pause");
}

BOOST_AUTO_TEST_CASE(b88_an_update_of_a_target_that_sleeps_is_refused_with_nothing_written) {
    check_ranks(pair_of<parameter_tables<>>{}.run(
                    [](auto& trainer) -> std::string {
                        auto const said = send_versions(trainer, 1, 1);
                        if (said.find("asleep") == std::string::npos) return said;
                        return send_versions(trainer, 2, 2);
                    },
                    [](auto& worker, auto& tables) -> std::string {
                        uniform_model held;
                        held.model().add_to(tables.main());
                        tables.sleep(deadline::after(1s));
                        BOOST_CHECK_THROW(static_cast<void>(worker.start()), lifecycle_error);
                        auto const said =
                            message_of([&] { static_cast<void>(worker.serve_one()); });
                        if (said.find("asleep") == std::string::npos) return said;
                        if (tables.mixed()) return "mixed";
                        for (auto const& bytes : held.model().values()) {
                            if (bytes != contents(bytes.size())) return "something was written";
                        }
                        tables.wake();
                        static_cast<void>(worker.serve_one());
                        return mixed_weights(tables.snapshot(deadline::after(1s)));
                    }),
                "asleep");
}

BOOST_AUTO_TEST_CASE(b88_falling_asleep_between_chunks_ends_the_update) {
    std::atomic<bool> asleep{false};
    pair_of<parameter_tables<>> both;
    check_ranks(
        both.run(
            [](auto& trainer) -> std::string {
                return send_versions(trainer, 1, 1).empty() ? "it passed" : "";
            },
            [&](auto& worker, auto& tables) -> std::string {
                uniform_model held;
                held.model().add_to(tables.main());
                std::jthread sleeper;
                tables.main().add_layer(
                    {.name = "layers.0", .after = {"layers.0.w"}, .run = [&](auto const&, auto) {
                         sleeper = std::jthread{[&] {
                             tables.sleep(deadline::after(60s));
                             for (auto const& s : specs) {  // the memory goes: nobody may write it
                                 auto const* own = tables.main().find(s.name);
                                 std::memset(own->data(), 0, own->bytes());
                             }
                             asleep = true;
                         }};
                         while (!tables.stop_requested({})) std::this_thread::sleep_for(1ms);
                     }});
                auto const said = message_of([&] { static_cast<void>(worker.serve_one()); });
                if (said.find("falls asleep") == std::string::npos) return "said: " + said;
                if (said.find("payload: tensor '") == std::string::npos) return said;
                sleeper.join();
                if (!asleep) return "it did not sleep";
                if (!tables.mixed()) return "not mixed";
                for (auto const& bytes : held.model().values()) {
                    if (bytes != contents(bytes.size())) return "written while asleep";
                }
                return "";
            }),
        "falling asleep");
}

BOOST_AUTO_TEST_CASE(b39_both_names_of_tied_weights_may_come_with_equal_bytes_only) {
    for (auto const where : {cpu_device, host1}) {
        for (bool const equal : {true, false}) {
            pair_of<parameter_tables<>> both;
            both.where = where;
            auto const said = both.run(
                [&](auto& trainer) -> std::string {
                    test_model sent{
                        cpu_device,
                        {{"embed", dtype::float32, {64, 8}}, {"lm_head", dtype::float32, {64, 8}}},
                        5};
                    if (equal) sent.memory(1).write(sent.values()[0]);
                    auto source = sent.source();
                    return trainer.update(source).groups.at(0).message;
                },
                [&](auto& worker, auto& tables) -> std::string {
                    placed_bytes memory{where, contents(64 * 8 * 4)};
                    tables.main().add("embed",
                                      tensor_view<>{memory.data(), dtype::float32, {64, 8}, where});
                    tables.main().alias("lm_head", "embed");
                    auto const message = message_of([&] { static_cast<void>(worker.serve_one()); });
                    test_model const sent{cpu_device, {{"embed", dtype::float32, {64, 8}}}, 5};
                    if (equal && memory.read() != sent.values()[0]) return "other bytes";
                    return message;
                });
            for (auto const& text : said) {
                if (equal)
                    BOOST_TEST(text == "");
                else
                    BOOST_TEST(text.find("tensors 'lm_head' and 'embed' share memory") !=
                                   std::string::npos,
                               text);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(b40_b35_a_report_lists_buffers_left_out_and_names_dropped) {
    check_ranks(
        pair_of<parameter_tables<>>{}.run(
            [](auto& trainer) -> std::string {
                test_model const sent{cpu_device,
                                      {{"w", dtype::float32, {4}},
                                       {"v", dtype::float32, {4}},
                                       {"rotary.inv_freq", dtype::float32, {300}}},
                                      5};
                auto source = sent.source();
                if (auto result = trainer.update(source); !result.ok())
                    return result.groups.at(0).message;
                auto const refused =
                    trainer.update(source, {.coverage = update_coverage::everything});
                return refused.groups.at(0).message.find("'router.bias'") == std::string::npos
                           ? "full coverage passed"
                           : "";
            },
            [](auto& worker, auto& tables) -> std::string {
                std::vector<float> w(4), v(4), bias(2);
                tables.main().add("w", w);
                tables.main().add("v", v);
                tables.main().add_buffer("router.bias", bias);
                tables.main().accept_unknown_names();
                auto const report = worker.serve_one();
                if (report.not_covered != std::vector<std::string>{"router.bias"}) return "covered";
                if (report.unknown != std::vector<std::string>{"rotary.inv_freq"}) return "known";
                return message_of([&] { static_cast<void>(worker.serve_one()); }).empty() ? "passed"
                                                                                          : "";
            }),
        "report");
}

BOOST_AUTO_TEST_CASE(b91_an_adapter_is_never_counted_twice) {
    auto const x = target_id::adapter("x");
    struct sent {
        target_id target;
        std::vector<weight_role> roles;
        std::string refusal;  // empty: it passes
    };
    using enum weight_role;
    std::vector<sent> const updates{
        {{}, {base, base}, ""},
        {x, {adapter, adapter}, ""},
        {{}, {base, base}, ""},  // the second sync changes nothing in that
        {x, {adapter, base}, ""},
        {{}, {merged, adapter}, "it would count twice"},
        {{}, {merged, merged}, "while target 'adapter:x' is loaded"},
        {{}, {adapter, adapter}, "send it to target 'adapter:ID'"},
        {x, {merged, base}, "brings merged weights"},
    };
    check_ranks(
        pair_of<parameter_tables<>>{}.run(
            [&](auto& trainer) -> std::string {
                auto const send = [&](sent const& one) {
                    std::vector<float> a(4), b(4);
                    table_source<> source;
                    source.add("a", a, one.roles[0]);
                    source.add("b", b, one.roles[1]);
                    return trainer.update(source, {.target = one.target}).groups.at(0).message;
                };
                for (std::size_t i = 0; i < updates.size(); ++i) {
                    auto const said = send(updates[i]);
                    if (said.empty() != updates[i].refusal.empty() ||
                        said.find(updates[i].refusal) == std::string::npos)
                        return std::to_string(i) + ": " + said;
                }
                // without the adapter, merged weights are welcome; then it is not
                if (auto said = send({{}, {merged, merged}, ""}); !said.empty()) return said;
                auto const said = send({x, {adapter, adapter}, ""});
                return said.find("send the base first") == std::string::npos ? said : "";
            },
            [&](auto& worker, auto& tables) -> std::string {
                std::vector<float> a(4), b(4), xa(4), xb(4);
                tables.main().add("a", a);
                tables.main().add("b", b);
                auto const load = [&] {
                    tables.adapter("x").add("a", xa);
                    tables.adapter("x").add("b", xb);
                };
                load();
                for (auto const& one : updates) {
                    auto const said = message_of([&] { static_cast<void>(worker.serve_one()); });
                    if (said.empty() != one.refusal.empty()) return said;
                }
                tables.remove(x);
                static_cast<void>(worker.serve_one());
                load();
                return message_of([&] { static_cast<void>(worker.serve_one()); }).empty() ? "passed"
                                                                                          : "";
            }),
        "adapters");
}

BOOST_AUTO_TEST_CASE(an_adapter_is_loaded_replaced_in_place_and_removed) {
    parameter_tables<> tables;
    std::vector<float> a(4);
    tables.adapter("x").add("a", a);
    auto const x = target_id::adapter("x");
    {
        auto const held = tables.snapshot(deadline::after(1s), x);
        BOOST_CHECK_EXCEPTION(tables.remove(x), lifecycle_error, says("1 snapshots"));
    }
    tables.remove(x);
    BOOST_TEST(!tables.has(x));
    BOOST_CHECK_THROW(tables.remove(x), bad_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
