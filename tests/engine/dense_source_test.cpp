// SPDX-License-Identifier: Apache-2.0
// What the sender asks of its source, and what becomes of sources that make their tensors, are busy or lie.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_source.hpp>
#include <weightcast/model/transformed_source.hpp>

namespace weightcast::test {
namespace {

bool has(std::string const& text, std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

packing_options const small{.chunk_bytes = 512, .direct_from = 2000};

/// float32 to its upper half, bfloat16 by truncation; and the lower half under another name. On the stream.
struct halves {
    std::vector<parameter> outputs(parameter const& input) const {
        return {{input.name + ".high", dtype::bfloat16, input.shape},
                {input.name + ".low", dtype::uint16, input.shape}};
    }
    void apply(const_tensor_view<> const& from, parameter const& input, std::size_t k,
               tensor_view<> const& to, host_stream_ref stream) const {
        auto const* const words = static_cast<std::uint16_t const*>(from.data());
        auto* const half = static_cast<std::uint16_t*>(to.data());
        auto const count = element_count(input.shape);
        host_runtime::enqueue(stream, [=]() noexcept {
            for (std::uint64_t i = 0; i < count; ++i) half[i] = words[2 * i + (k == 0 ? 1 : 0)];
        });
    }
};
static_assert(WeightTransform<halves, host_runtime>);
using halved_source = transformed_source<host_runtime, table_source<>, halves>;

/// What a receiver of halves must hold.
std::vector<contents> halves_of(std::vector<contents> const& values) {
    std::vector<contents> all;
    for (auto const& bytes : values) {
        for (std::size_t const offset : {2U, 0U}) {
            contents half;
            for (std::size_t i = 0; i < bytes.size(); i += 4) {
                half.push_back(bytes[i + offset]);
                half.push_back(bytes[i + offset + 1]);
            }
            all.push_back(half);
        }
    }
    return all;
}
std::vector<tensor_spec> halves_of(std::vector<tensor_spec> const& specs) {
    std::vector<tensor_spec> all;
    for (auto const& s : specs) {
        all.push_back({s.name + ".high", dtype::bfloat16, s.shape});
        all.push_back({s.name + ".low", dtype::uint16, s.shape});
    }
    return all;
}

BOOST_AUTO_TEST_SUITE(dense_source)

BOOST_AUTO_TEST_CASE(each_tensor_is_asked_for_once_in_the_order_of_the_indices) {
    auto const specs = tensors_of_bytes({300, 3000, 0, 10, 4000, 100, 9000, 0, 200, 1, 0});
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    for (packing_options const& packing :
         {small, packing_options{.chunk_bytes = 128, .direct_from = 2000},
          packing_options{.chunk_bytes = 128, .direct_from = 0},
          packing_options{.chunk_bytes = 128, .direct_from = 1U << 30U}, vllm_packing(512)}) {
        for (bool const verify : {false, true}) {
            test_fleet const fleet{.settings = {.packing = packing, .verify = verify}};
            check_ranks(fleet.run(
                            [&](test_trainer& trainer) -> std::string {
                                recording_source plain{model};
                                send_update(trainer, plain, 1);
                                if (plain.asked != each_once(specs.size()))
                                    return "asked in another order";
                                momentary_source made{model};
                                send_update(trainer, made, 2);
                                if (made.asked != each_once(specs.size()))
                                    return "asked in another order";
                                std::ranges::sort(made.released);
                                if (made.released != each_once(specs.size()))
                                    return "not each released once";
                                return failure_of(trainer);
                            },
                            [&](test_engine& engine, int) -> std::string {
                                test_model held{cpu_device, specs, 0};
                                held.add_to(engine.target().main());
                                receive_update(engine);
                                if (auto wrong = first_difference(held, expected); !wrong.empty())
                                    return wrong;
                                held.refill(77);
                                receive_update(engine);
                                return first_difference(held, expected);
                            }),
                        "asked once");
        }
    }
}

BOOST_AUTO_TEST_CASE(transforms_run_on_the_given_stream_before_alignment) {
    std::vector<tensor_spec> const specs{{"a", dtype::float32, {100}},
                                         {"b", dtype::float32, {40, 60}},
                                         {"c", dtype::float32, {0, 3}},
                                         {"d", dtype::float32, {7}},
                                         {"e", dtype::float32, {3000}}};
    for (auto const from : {cpu_device, host0, host1}) {
        for (auto const to : {cpu_device, host1}) {
            for (std::uint64_t const direct_from : {std::uint64_t{1} << 40U, std::uint64_t{500}}) {
                settings_scope const delayed{
                    {.max_delay = std::chrono::microseconds{100}, .delay_seed = 5}};
                test_model const model{from, specs, 1};
                auto const expected = halves_of(model.values());
                test_fleet const fleet{
                    .size = 3,
                    .where = to,
                    .settings = {.packing = {.chunk_bytes = 512, .direct_from = direct_from},
                                 .verify = true}};
                check_ranks(fleet.run(
                                [&](test_trainer& trainer) {
                                    halved_source source{model.source(), halves{}};
                                    send_update(trainer, source, 1);
                                    send_update(trainer, source, 2);
                                    return failure_of(trainer);
                                },
                                [&](test_engine& engine, int) {
                                    test_model held{to, halves_of(specs), 0};
                                    held.add_to(engine.target().main());
                                    receive_update(engine);
                                    held.refill(77);
                                    receive_update(engine);
                                    return first_difference(held, expected);
                                }),
                            to_string(from) + " to " + to_string(to));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_a_transform_makes_is_in_memory_for_a_moment_only) {
    // 64 float32 masters of 4 KiB on a device that no other test uses: 256 KiB of them, 256 KiB of halves.
    device const where = fresh_device();
    std::vector<tensor_spec> specs;
    for (int i = 0; i < 64; ++i) specs.push_back({"t" + std::to_string(i), dtype::float32, {1024}});
    for (std::uint64_t const direct_from : {std::uint64_t{1} << 40U, std::uint64_t{1}}) {
        test_model const model{where, specs, 1};
        test_fleet const fleet{
            .where = cpu_device,
            .settings = {.packing = {.chunk_bytes = 4096, .direct_from = direct_from}}};
        std::uint64_t most = 0;
        auto const before = runtime::memory(where).active;
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            halved_source source{model.source(), halves{}};
                            send_update(trainer, source, 1);
                            most = runtime::memory(where).peak;
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int) {
                            test_model held{cpu_device, halves_of(specs), 0};
                            held.add_to(engine.target().main());
                            receive_update(engine);
                            return std::string{};
                        }),
                    "momentary");
        BOOST_TEST(runtime::memory(where).active == before);
        // at most what one window (4 rings of 2 chunks) and one more tensor hold
        BOOST_TEST(most <= before + 8 * 4096U + 2 * 2048U);
    }
}

BOOST_AUTO_TEST_CASE(memory_of_a_transform_does_not_outlive_the_stream_it_came_from) {
    // The update fails in the middle, the trainer goes, then the source: its buffers must be gone by then.
    std::vector<tensor_spec> specs;
    for (int i = 0; i < 10; ++i) specs.push_back({"t" + std::to_string(i), dtype::float32, {1000}});
    for (std::uint64_t const direct_from : {std::uint64_t{1} << 40U, std::uint64_t{1}}) {
        test_model const model{host1, specs, 1};
        auto const before = runtime::memory(host1).active;
        local_group const group{2, {.where = {host1}, .grace = std::chrono::seconds{10}}};
        halved_source source{model.source(), halves{}};
        check_ranks(run_threads({[&] {
                                     test_trainer trainer{joins(group),
                                                          {.packing = {.chunk_bytes = 512,
                                                                       .direct_from = direct_from}},
                                                          patient_limits()};
                                     trainer.init({place(0, 2)});
                                     send_update(trainer, source, 1);
                                     return unless(!failure_of(trainer).empty(), "it passed");
                                 },
                                 [&] {
                                     parameter_tables<> tables;
                                     test_model held{host1, halves_of(specs), 0};
                                     held.add_to(tables.main());
                                     test_engine engine{joins(group), tables, patient_limits()};
                                     engine.init(place(1, 2));
                                     auto const update = engine.next();
                                     engine.start(update.target());
                                     auto& m = engine.member();
                                     static_cast<void>(m.mailbox().agree(std::nullopt, patient(),
                                                                         phase::preflight));
                                     engine.interrupt();
                                     engine.rollback();
                                     return std::string{};
                                 }}),
                    "fails in the middle");
        BOOST_TEST(runtime::memory(host1).active == before);
    }
}

/// Its tensors get their bytes on the stream, some time after they are asked for.
class late_source : public recording_source {
  public:
    late_source(test_model& model, std::vector<contents> values)
        : recording_source{model}, values_{std::move(values)} {}
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        auto given = recording_source::tensor(index, stream);
        auto* const data = const_cast<void*>(given.tensor.data());
        runtime::copy(data, cpu_device, values_[index].data(), cpu_device, values_[index].size(),
                      stream);
        return given;
    }

  private:
    std::vector<contents> values_;
};
static_assert(!has_tensor_release<late_source, host_runtime>);

BOOST_AUTO_TEST_CASE(digests_are_of_what_the_source_makes_on_its_stream) {
    auto const specs = tensors_of_bytes({300, 5000, 80});
    settings_scope const delayed{{.max_delay = std::chrono::milliseconds{3}, .delay_seed = 8}};
    auto const expected = test_model{cpu_device, specs, 5}.values();
    test_model made{cpu_device, specs, 0};
    test_fleet const fleet{.settings = {.packing = small, .verify = true}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        late_source source{made, expected};
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, specs, 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        return first_difference(held, expected);
                    }),
                "late source");
}

// --- sources that lie ---

BOOST_AUTO_TEST_CASE(another_tensor_than_announced_is_an_error_and_receivers_hear_at_once) {
    std::vector<tensor_spec> const specs{
        {"a", dtype::uint8, {300}},       {"b", dtype::float32, {100}}, {"c", dtype::uint8, {300}},
        {"d", dtype::float32, {100, 10}}, {"e", dtype::float32, {100}}, {"f", dtype::int32, {100}}};
    struct lie {
        std::size_t asked;
        std::size_t given;
        std::string reason;
    };
    for (auto const& [asked, given, reason] :
         {lie{0, 2, "expected 'a' uint8[300], got 'c' uint8[300]"},    // another name of equal type
          lie{1, 5, "expected 'b' float32[100], got 'f' int32[100]"},  // another type
          lie{4, 3, "expected 'e' float32[100], got 'd' float32[100, 10]"},
          lie{3, 1, "expected 'd' float32[100, 10], got 'b' float32[100]"}}) {
        test_model const model{cpu_device, specs, 1};
        test_fleet const fleet{.size = 3, .settings = {.packing = small}};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) -> std::string {
                            recording_source source{model};
                            source.which = [=](std::size_t i) { return i == asked ? given : i; };
                            try {
                                send_update(trainer, source, 1);
                                return "it was sent";
                            } catch (bad_input const& e) {
                                if (!has(e.what(), {"payload: tensor '",
                                                    "another tensor than it announced", reason})) {
                                    return e.what();
                                }
                            }
                            return unless(!failure_of(trainer).empty(), "the group did not fail");
                        },
                        [&](test_engine& engine, int) -> std::string {
                            test_model held{cpu_device, specs, 0};
                            held.add_to(engine.target().main());
                            auto const message = message_of([&] { receive_update(engine); });
                            if (!has(message, {"payload", "rank 0 aborted"})) return message;
                            return unless(engine.target().mixed(), "not mixed");
                        }),
                    reason);
    }
}

BOOST_AUTO_TEST_CASE(a_tensor_elsewhere_than_its_memory_is_an_error) {
    contents ordinary(3000);
    for (std::int64_t const bytes : {300, 3000}) {
        test_fleet const fleet{.settings = {.packing = small}};
        check_ranks(
            fleet.run(
                [&](test_trainer& trainer) -> std::string {
                    table_source<> source;
                    source.add("t0", tensor_view<>{ordinary.data(), dtype::uint8, {bytes}, host1});
                    try {
                        send_update(trainer, source, 1);
                        return "it was sent";
                    } catch (device_mismatch const& e) {
                        return unless(has(e.what(), {"tensor 't0'", "host:1", "cpu"}), e.what());
                    }
                },
                [&](test_engine& engine, int) {
                    test_model held{cpu_device, tensors_of_bytes({bytes}), 0};
                    held.add_to(engine.target().main());
                    return unless(!message_of([&] { receive_update(engine); }).empty(),
                                  "it passed");
                }),
            "elsewhere");
    }
}

BOOST_AUTO_TEST_CASE(metadata_that_is_no_plan_is_thrown_before_anybody_hears_of_it) {
    contents ordinary(300);
    test_model const model{cpu_device, tensors_of_bytes({300}), 1};
    test_fleet const fleet{};
    check_ranks(
        fleet.run(
            [&](test_trainer& trainer) -> std::string {
                table_source<> foreign;
                foreign.add(
                    "t0", tensor_view<>{
                              ordinary.data(), dtype::uint8, {300}, device{device_kind::cuda, 0}});
                try {
                    trainer.announce(foreign, {1, {}}, {});
                    return "it was announced";
                } catch (device_mismatch const& e) {
                    if (!has(e.what(), {"preflight: tensor 't0'", "cuda:0"})) return e.what();
                }
                auto source = model.source();
                send_update(trainer, source, 2);  // the receivers wait for this one still
                return failure_of(trainer);
            },
            [&](test_engine& engine, int) {
                test_model held{cpu_device, tensors_of_bytes({300}), 0};
                held.add_to(engine.target().main());
                receive_update(engine);
                return unless(engine.target().version().number == 2, "another version");
            }),
        "no plan");
}

BOOST_AUTO_TEST_CASE(a_tensor_without_a_device_index_is_on_the_callers_current_device) {
    test_model const model{host2, tensors_of_bytes({300, 3000}), 1};
    auto const expected = model.values();
    for (auto const to : {cpu_device, host1, host2}) {
        test_fleet const fleet{.where = to, .settings = {.packing = small, .verify = true}};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            runtime::set_current_device(2);
                            table_source<> source;
                            for (std::size_t i = 0; i < model.size(); ++i) {
                                auto const& v = model.view(i);
                                source.add(
                                    model.name(i),
                                    tensor_view<>{v.data(), v.type(), v.shape(),
                                                  device{device_kind::host, device::unresolved}});
                            }
                            send_update(trainer, source, 1);
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int) {
                            test_model held{to, tensors_of_bytes({300, 3000}), 0};
                            held.add_to(engine.target().main());
                            receive_update(engine);
                            return first_difference(held, expected);
                        }),
                    "no index");
    }
}

// --- sources that are busy ---

BOOST_AUTO_TEST_CASE(what_a_stream_still_writes_is_waited_for) {
    auto const new_bytes = pattern(3000, 9);
    for (auto const to : {cpu_device, host0, host1}) {
        test_model model{host0, tensors_of_bytes({3000}), 1};
        test_fleet const fleet{.where = to, .settings = {.packing = small}};
        weightcast::stream<runtime> const producer{host0};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            stream_blocker<runtime> blocker{producer.ref()};
                            runtime::copy(model.view(0).data(), host0, new_bytes.data(), cpu_device,
                                          3000, producer);
                            std::jthread const opens{[&] {
                                std::this_thread::sleep_for(std::chrono::milliseconds{30});
                                blocker.open();
                            }};
                            auto source = model.source();
                            send_update(trainer, source, 1);
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int) {
                            test_model held{to, tensors_of_bytes({3000}), 0};
                            held.add_to(engine.target().main());
                            receive_update(engine);
                            return first_difference(held, {new_bytes});
                        }),
                    "busy source");
    }
}

BOOST_AUTO_TEST_CASE(a_source_that_stays_busy_is_a_timeout_while_nobody_waits) {
    test_model const model{host0, tensors_of_bytes({3000}), 1};
    weightcast::stream<runtime> const producer{host0};
    test_fleet fleet{.settings = {.packing = small}};
    check_ranks(fleet.run(
                    [&](test_trainer& ready) -> std::string {
                        local_group const other{1};
                        auto limits = patient_limits();
                        limits.update = std::chrono::milliseconds{50};
                        test_trainer impatient{joins(other), {}, limits};
                        auto source = model.source();
                        {
                            stream_blocker<runtime> const blocker{producer.ref()};
                            try {
                                impatient.announce(source, {1, {}}, {});
                                return "it did not wait";
                            } catch (timeout const& e) {
                                if (!has(e.what(), {"host:0", "busy"})) return e.what();
                            }
                        }
                        send_update(ready, source, 1);
                        return failure_of(ready);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, tensors_of_bytes({3000}), 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        return std::string{};
                    }),
                "stays busy");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
