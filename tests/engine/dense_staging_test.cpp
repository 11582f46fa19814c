// SPDX-License-Identifier: Apache-2.0
// Staging holds a ring of chunks on either side, whatever the model's size: counted where nothing else is.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/child_process.hpp>
#include <support/test_model.hpp>

namespace weightcast::test {
namespace {

constexpr std::uint64_t chunk = 4096;
constexpr std::uint64_t ring = 2;

/// A model on the heap, so that host_runtime counts staging alone.
class plain_model {
  public:
    plain_model(std::size_t tensors, std::size_t bytes, std::uint64_t seed) {
        for (std::size_t i = 0; i < tensors; ++i) memory_.push_back(pattern(bytes, seed + i));
    }
    template <class Table>
    void add_to(Table& table, bool strided = false) {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            auto const half = static_cast<std::int64_t>(memory_[i].size() / 2);
            tensor_view<> const whole{memory_[i].data(), dtype::uint8, {half}};
            tensor_view<> const every_other{memory_[i].data(), dtype::uint8, {half}, extents{2}};
            table.add("t" + std::to_string(i), strided ? every_other : whole);
        }
    }

  private:
    std::vector<contents> memory_;
};

struct staging_case {
    std::uint64_t direct_from = 0;
    bool strided_source = false;
    bool strided_target = false;
};

/// One update of `tensors` x `bytes` between two ranks on the cpu; the most that was staged.
std::uint64_t most_staged(staging_case const& how, std::size_t tensors, std::size_t bytes,
                          device group_device) {
    local_group const group{2, {.where = {group_device, cpu_device}}};
    check_ranks(run_threads({[&] {
                                 plain_model model{tensors, 2 * bytes, 1};
                                 table_source<> source;
                                 model.add_to(source, how.strided_source);
                                 test_trainer trainer{joins(group),
                                                      {.packing = {.chunk_bytes = chunk,
                                                                   .direct_from = how.direct_from,
                                                                   .ring = ring}},
                                                      patient_limits()};
                                 trainer.init({place(0, 2)});
                                 send_update(trainer, source, 1);
                                 return failure_of(trainer);
                             },
                             [&] {
                                 plain_model model{tensors, 2 * bytes, 1000};
                                 parameter_tables<> tables;
                                 model.add_to(tables.main(), how.strided_target);
                                 test_engine engine{joins(group), tables, patient_limits()};
                                 engine.init(place(1, 2));
                                 receive_update(engine);
                                 return std::string{};
                             }}),
                "staging");
    return runtime::memory(group_device).peak;
}

constexpr std::uint64_t never = std::uint64_t{1} << 40U;

/// In a process of its own, where no other test has raised the peak of device `cpu`.
int print_cpu_peak(child_arguments const& arguments) {
    staging_case const how{.direct_from = std::stoull(arguments.at(0)),
                           .strided_source = arguments.at(1) == "1",
                           .strided_target = arguments.at(2) == "1"};
    std::cout << most_staged(how, std::stoul(arguments.at(3)), std::stoul(arguments.at(4)),
                             cpu_device)
              << std::endl;
    return 0;
}
child const peak_child{"dense_staging_peak", &print_cpu_peak};

std::uint64_t cpu_peak(staging_case const& how, std::size_t tensors, std::size_t bytes) {
    child_process process{
        "dense_staging_peak",
        {std::to_string(how.direct_from), how.strided_source ? "1" : "0",
         how.strided_target ? "1" : "0", std::to_string(tensors), std::to_string(bytes)}};
    auto const line = process.read_line(deadline::after(std::chrono::seconds{200}));
    return std::stoull(line);
}

BOOST_AUTO_TEST_SUITE(dense_staging)

BOOST_AUTO_TEST_CASE(both_sides_of_a_cpu_group_stage_a_ring_each) {
    struct expectation {
        staging_case how;
        std::uint64_t sides;  ///< that stage at all
    };
    for (auto const& [how, sides] : {expectation{{.direct_from = never}, 2},  // all packed
                                     expectation{{.direct_from = 1}, 0},      // all direct
                                     expectation{{.direct_from = 1, .strided_source = true}, 2},
                                     expectation{{.direct_from = 1, .strided_target = true}, 2}}) {
        for (std::size_t const bytes : {1000U, 5000U, 50'000U}) {
            auto const peak = cpu_peak(how, 100, bytes);
            BOOST_TEST_CONTEXT("tensors of " << bytes << " bytes, direct from "
                                             << how.direct_from) {
                BOOST_TEST(peak <= sides * ring * chunk);
                if (sides != 0) BOOST_TEST(peak >= chunk);
                BOOST_TEST((sides == 0) == (peak == 0));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_group_on_another_device_than_its_sources_stages_a_ring) {
    device const where = fresh_device();
    std::uint64_t last = 0;
    for (std::uint64_t const direct_from : {never, std::uint64_t{1}}) {
        for (std::size_t const bytes : {100U, 5000U, 50'000U}) {
            last = most_staged({.direct_from = direct_from}, 50, bytes, where);
            BOOST_TEST(runtime::memory(where).active == 0U);
        }
    }
    // the mailbox has a small buffer of its own there, for messages
    BOOST_TEST(last >= ring * chunk);
    BOOST_TEST(last <= ring * chunk + 8192);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
