// SPDX-License-Identifier: Apache-2.0
// `weightcast demo --kill`: the drill fails as it should, in each phase, and says so.

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;

namespace {

/// A model whose payload does not fit in what the kernel keeps for a connection.
struct drill {
    temporary_folder folder{};
    std::string model = folder / "model.safetensors";

    drill() {
        std::vector<file_tensor> tensors;
        for (int i = 0; i < 8; ++i) {
            tensors.push_back({"layers." + std::to_string(i) + ".w",
                               "F32",
                               {1024, 1024},
                               std::string(4U << 20U, 'w')});
        }
        write_file(model, safetensors_bytes(tensors));
    }
    outcome run(child_arguments more) const {
        child_arguments all{"demo",     "--model", model,        "--workers", "3",
                            "--rounds", "2",       "--deadline", "5"};
        all.insert(all.end(), more.begin(), more.end());
        return run_program(all);
    }
};

/// The line that names phase and rank; then one of each survivor.
void check_drill(outcome const& run, int rank, std::string const& asked,
                 std::vector<std::string> const& noticed_in) {
    BOOST_TEST(run.exit_code == 1);
    auto const lines = messages(run.err);
    BOOST_REQUIRE_MESSAGE(lines.size() == 3U, run.err);
    bool known = false;
    for (auto const& where : noticed_in)
        known = known || lines[0].find(" failed in phase " + where + " at rank " +
                                       std::to_string(rank) + " (pid ") != std::string::npos;
    BOOST_TEST(known, lines[0]);
    BOOST_TEST(lines[0].find("killed by signal 9) (as --kill " + std::to_string(rank) + "@" +
                             asked + " asked): ") != std::string::npos,
               lines[0]);
    auto const round =
        asked == "connect" ? "weightcast: forming the group " : "weightcast: round 2 ";
    BOOST_TEST(lines[0].starts_with(round), lines[0]);
    int expected = 1;
    for (std::size_t i : {1U, 2U}) {
        if (expected == rank) ++expected;
        BOOST_TEST(
            lines[i].starts_with("weightcast: rank " + std::to_string(expected++) + " (pid "),
            lines[i]);
        auto const at = lines[i].find(" survived: ");
        BOOST_REQUIRE_MESSAGE(at != std::string::npos, lines[i]);
        BOOST_TEST(lines[i].size() > at + 11 + 10);  // it says something
        BOOST_TEST(lines[i].find("ended without an answer") == std::string::npos, lines[i]);
        BOOST_TEST(lines[i].find("in time") == std::string::npos, lines[i]);
    }
    BOOST_TEST(run.out.find("verified") == std::string::npos);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demo_kill)

BOOST_AUTO_TEST_CASE(a_worker_that_kills_itself_in_any_phase_fails_the_demo_within_the_deadline) {
    drill const demo;
    struct moment {
        std::string phase;
        std::vector<std::string> noticed_in;
    };
    std::vector<moment> const moments{{"connect", {"connect"}},
                                      {"preflight", {"preflight"}},
                                      {"payload", {"payload"}},
                                      {"vote", {"payload", "vote"}},
                                      {"commit", {"vote", "commit"}}};
    for (auto const& m : moments) {
        for (int const rank : {1, 3}) {
            BOOST_TEST_CONTEXT(m.phase << " at rank " << rank) {
                auto const begin = std::chrono::steady_clock::now();
                auto const run = demo.run({"--kill", std::to_string(rank) + "@" + m.phase});
                auto const took = std::chrono::steady_clock::now() - begin;
                check_drill(run, rank, m.phase, m.noticed_in);
                BOOST_TEST((took < std::chrono::seconds{5 + 5 + 15}));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_document_of_a_drill_is_whole) {
    drill const demo;
    auto const run = demo.run({"--kill", "2@payload", "--policy", "shadow", "--json"});
    BOOST_TEST(run.exit_code == 1);
    auto const document = json_of(run);
    BOOST_TEST(!document.at("verified").as_bool());
    BOOST_TEST(document.at("rounds").as_array().size() == 1U);
    auto const& workers = document.at("workers").as_array();
    BOOST_REQUIRE_EQUAL(workers.size(), 3U);
    BOOST_TEST(workers[0].as_object().contains("survived"));
    BOOST_TEST(!workers[1].as_object().contains("survived"));
    BOOST_TEST(workers[2].as_object().contains("survived"));
}

BOOST_AUTO_TEST_CASE(drills_that_cannot_be_are_refused) {
    drill const demo;
    for (std::string const text : {"1", "1@", "@vote", "1@voting", "1@Vote", "1:vote", "0@vote",
                                   "-1@vote", "65@vote", "one@vote", "1@vote@vote", ""}) {
        BOOST_TEST_CONTEXT(text) { check_refused(demo.run({"--kill=" + text}), {"--kill"}); }
    }
    check_refused(demo.run({"--kill", "1@voting"}),
                  {"expected RANK@PHASE", "connect preflight payload vote commit", "'1@voting'"});
    check_refused(demo.run({"--kill", "4@vote"}), {"--kill: expected a rank from 1 to 3, got 4"});
    check_refused(demo.run({"--kill", "1@vote", "--transport", "local"}),
                  {"--kill: expected processes (--transport gloo)"});
}

BOOST_AUTO_TEST_SUITE_END()
