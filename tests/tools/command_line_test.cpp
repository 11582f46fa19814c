// SPDX-License-Identifier: Apache-2.0
// What the program accepts and refuses, before it does anything.

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;

namespace {

/// A demo that would be refused, or done in a moment, over threads.
outcome demo(std::string const& model, child_arguments more) {
    child_arguments all{"demo", "--model", model, "--transport", "local", "--rounds", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
}

struct refused_value {
    std::string option;
    std::string value;
    std::string expected;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(command_line)

BOOST_AUTO_TEST_CASE(help_lists_the_commands_and_no_hidden_one) {
    for (std::string const flag : {"--help", "-h"}) {
        auto const run = run_program({flag});
        BOOST_TEST(run.exit_code == 0);
        BOOST_TEST(run.err.empty());
        for (std::string const command : {"demo", "plan", "verify"}) {
            BOOST_TEST(run.out.find("\n  " + command + " ") != std::string::npos);
        }
        BOOST_TEST(run.out.find("demo-worker") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(help_of_a_command_lists_its_flags_with_their_defaults) {
    auto const run = run_program({"demo", "--help"});
    BOOST_TEST(run.exit_code == 0);
    for (std::string const flag :
         {"--model FILE", "--workers N=2", "--rounds K=3", "--change FRACTION=0.02", "--seed S=1",
          "--engine dense|packed=packed", "--transport local|gloo=gloo",
          "--policy in_place|shadow=in_place", "--tp N=1", "--dump DIR", "--corrupt-one-byte",
          "--kill RANK@PHASE", "--deadline SECONDS=20", "--announce-deadline SECONDS=1800",
          "--json"}) {
        BOOST_TEST(run.out.find(flag) != std::string::npos, flag);
    }
    BOOST_TEST(run_program({"plan", "--help"}).out.find("--layout native|vllm=native") !=
               std::string::npos);
    BOOST_TEST(run_program({"verify", "--help"}).exit_code == 0);
}

BOOST_AUTO_TEST_CASE(without_a_command_it_lists_what_is_there) {
    check_refused(run_program({}), {"expected a command (demo, plan, verify), got none"});
    check_refused(run_program({"push"}), {"(demo, plan, verify)", "got 'push'"});
    check_refused(run_program({"--json"}), {"got '--json'"});
    check_refused(run_program({""}), {"got none"});
    check_refused(run_program({"Demo"}), {"got 'Demo'"});
}

BOOST_AUTO_TEST_CASE(the_workers_command_is_not_for_people) {
    check_refused(run_program({"demo-worker"}), {"parent is required"});
    check_refused(run_program({"demo-worker", "zero"}), {"parent"});
    check_refused(run_program({"demo-worker", "0"}), {"parent"});
}

BOOST_AUTO_TEST_CASE(missing_and_surplus_arguments) {
    check_refused(run_program({"demo"}), {"--model is required"});
    check_refused(run_program({"demo", "--model"}), {"--model"});
    check_refused(run_program({"plan"}), {"FILE is required"});
    check_refused(run_program({"verify"}), {"required"});
    check_refused(run_program({"verify", "a"}), {"B is required"});
    check_refused(run_program({"verify", "a", "b", "c"}), {"unexpected argument: c"});
    check_refused(run_program({"plan", "a", "b"}), {"unexpected argument: b"});
    check_refused(run_program({"demo", "--model", "x", "y"}), {"unexpected argument: y"});
}

BOOST_AUTO_TEST_CASE(flags_that_are_not_there) {
    for (std::string const flag : {"--nccl-library", "--to", "--layout", "--worker"}) {
        check_refused(run_program({"demo", "--model", "x", flag, "1"}),
                      {"unexpected argument: " + flag});
    }
    check_refused(run_program({"plan", "x", "--engine", "dense"}),
                  {"unexpected argument: --engine"});
    check_refused(run_program({"verify", "a", "b", "--layout", "vllm"}), {"--layout"});
}

BOOST_AUTO_TEST_CASE(values_out_of_range) {
    std::vector<refused_value> const cases{
        {"--workers", "0", "a whole number from 1 to 64"},
        {"--workers", "65", "a whole number from 1 to 64"},
        {"--workers", "-1", "a whole number from 1 to 64"},
        {"--workers", "2.5", "a whole number from 1 to 64"},
        {"--workers", "two", "a whole number from 1 to 64"},
        {"--workers", "4294967298", "a whole number from 1 to 64"},
        {"--workers", " 2", "a whole number from 1 to 64"},
        {"--tp", "0", "a whole number from 1 to 64"},
        {"--tp", "two", "a whole number from 1 to 64"},
        {"--rounds", "0", "a whole number from 1 to 1000000"},
        {"--rounds", "-3", "a whole number"},
        {"--rounds", "1e3", "a whole number"},
        {"--change", "-0.01", "a number from 0 to 1"},
        {"--change", "1.01", "a number from 0 to 1"},
        {"--change", "nan", "a number from 0 to 1"},
        {"--change", "inf", "a number from 0 to 1"},
        {"--change", "2%", "a number from 0 to 1"},
        {"--seed", "-1", "a whole number from 0 to 18446744073709551615"},
        {"--seed", "18446744073709551616", "a whole number"},
        {"--deadline", "0", "a number from 0.1 to 86400"},
        {"--deadline", "-5", "a number from 0.1 to 86400"},
        {"--deadline", "soon", "a number from 0.1 to 86400"},
        {"--deadline", "1e300", "a number from 0.1 to 86400"},
        {"--announce-deadline", "0", "a number from 0.1 to 2592000"},
        {"--announce-deadline", "nan", "a number"},
    };
    for (auto const& c : cases) {
        BOOST_TEST_CONTEXT(c.option << ' ' << c.value) {
            check_refused(run_program({"demo", "--model", "x", c.option, c.value}),
                          {c.option + ": expected " + c.expected, "got '" + c.value + "'"});
        }
    }
}

BOOST_AUTO_TEST_CASE(engines_and_transports_that_are_not_there) {
    for (std::string const engine : {"ipc", "sparse", "delta", "auto", "PACKED", ""}) {
        check_refused(run_program({"demo", "--model", "x", "--engine=" + engine + "", "--json"}),
                      engine.empty() ? std::vector<std::string>{}
                                     : std::vector<std::string>{"--engine: '" + engine + "'",
                                                                "there is: dense packed"});
    }
    for (std::string const transport : {"shm", "nccl", "auto", "tcp"}) {
        check_refused(run_program({"demo", "--model", "x", "--transport", transport}),
                      {"--transport: '" + transport + "'", "there is: local gloo"});
    }
    check_refused(run_program({"demo", "--model", "x", "--workers", "3", "--tp", "2"}),
                  {"--tp: expected a number that divides the 3 workers, got 2"});
    for (std::string const policy : {"keep", "shadows", "IN_PLACE"}) {
        check_refused(run_program({"demo", "--model", "x", "--policy", policy}),
                      {"--policy: '" + policy + "'", "there is: in_place shadow"});
    }
}

BOOST_AUTO_TEST_CASE(layouts_and_sizes_that_cannot_be) {
    temporary_folder const folder;
    auto const file = folder / "model.safetensors";
    write_file(file, safetensors_bytes(mixed_model()));
    check_refused(run_program({"plan", file, "--layout", "torch"}), {"there is: native vllm"});
    for (std::string const size : {"0", "-1", "1.5", "64M", "9223372036854775808"}) {
        check_refused(run_program({"plan", file, "--packed-buffer-size", size}),
                      {"--packed-buffer-size: expected a whole number", "got '" + size + "'"});
    }
    check_refused(run_program({"plan", file, "--packed-buffer-size", "63"}),
                  {"--packed-buffer-size", "63", "64"});
}

BOOST_AUTO_TEST_CASE(the_last_value_of_a_flag_counts) {
    temporary_folder const folder;
    auto const file = folder / "model.safetensors";
    write_file(file, safetensors_bytes(mixed_model()));
    auto const run = demo(folder / "none", {"--model", file, "--workers", "5", "--workers", "1",
                                            "--engine", "packed", "--engine", "dense", "--json"});
    BOOST_REQUIRE(run.exit_code == 0);
    auto const document = json_of(run);
    BOOST_TEST(document.at("workers").as_array().size() == 1U);
    BOOST_TEST(document.at("rounds").at(0).at("engine").as_string() == "dense");
}

BOOST_AUTO_TEST_CASE(the_ends_of_each_range_are_accepted) {
    temporary_folder const folder;
    auto const file = folder / "model.safetensors";
    write_file(file, safetensors_bytes(mixed_model()));
    BOOST_TEST(demo(file, {"--workers", "1", "--change", "0", "--seed", "0"}).exit_code == 0);
    BOOST_TEST(demo(file, {"--change", "1", "--seed", "18446744073709551615"}).exit_code == 0);
    BOOST_TEST(
        demo(file, {"--change", "1e-9", "--deadline", "86400", "--announce-deadline", "2592000"})
            .exit_code == 0);
}

BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_a_failure) {
    temporary_folder const folder;
    auto const file = folder / "model.safetensors";
    write_file(file, safetensors_bytes(mixed_model()));
    child_process shell{"shell", {"\"$WEIGHTCAST_PROGRAM\" plan '" + file + "' >/dev/full"}};
    auto const run = finish(shell);
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.find("cannot write to standard output") != std::string::npos, run.err);
}

BOOST_AUTO_TEST_SUITE_END()
