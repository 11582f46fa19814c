// SPDX-License-Identifier: Apache-2.0
// `weightcast demo` where all goes well, and where the proof must fail.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>
#include <tools/terminal.hpp>

using namespace weightcast;
using namespace weightcast::test;
namespace json = boost::json;

namespace {

using strings = std::vector<std::string>;

struct demo_files {
    temporary_folder folder{};
    std::vector<file_tensor> tensors;
    std::string model;

    explicit demo_files(std::vector<file_tensor> all = mixed_model())
        : tensors{std::move(all)}, model{folder / "model.safetensors"} {
        write_file(model, safetensors_bytes(tensors));
    }
    outcome demo(child_arguments more = {}) const {
        child_arguments all{"demo", "--model", model};
        all.insert(all.end(), more.begin(), more.end());
        return run_program(all);
    }
    json::object document(child_arguments more, int exit_code = 0) const {
        more.emplace_back("--json");
        auto const run = demo(more);
        BOOST_REQUIRE_MESSAGE(run.exit_code == exit_code, run.err);
        return json_of(run);
    }
    std::string received(int rank) const {
        return folder / ("dump/rank-" + std::to_string(rank) + ".safetensors");
    }
};

std::uint64_t number(json::value const& value) { return value.to_number<std::uint64_t>(); }

bool is_digest(json::value const& value) {
    auto const& text = value.as_string();
    return text.size() == 16 && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

void check_round(json::object const& round, std::string const& engine, std::string const& transport,
                 int index, std::uint64_t bytes) {
    BOOST_TEST((keys_of(round) == strings{"round", "engine", "transport", "version", "bytes",
                                          "wire_bytes", "seconds", "gb_per_s", "memcpy_ratio"}));
    BOOST_TEST(round.at("round").to_number<int>() == index);
    BOOST_TEST(round.at("engine").as_string() == engine);
    BOOST_TEST(round.at("transport").as_string() == transport);
    BOOST_TEST(number(round.at("version")) == static_cast<std::uint64_t>(index));
    BOOST_TEST(number(round.at("bytes")) == bytes);
    BOOST_TEST(number(round.at("wire_bytes")) >= bytes);
    for (std::string const key : {"seconds", "gb_per_s", "memcpy_ratio"}) {
        BOOST_TEST(round.at(key).is_double(), key);
        BOOST_TEST(round.at(key).as_double() > 0);
    }
}

void check_document(json::object const& document, demo_files const& files,
                    std::string const& engine, std::string const& transport, std::size_t rounds,
                    std::size_t workers) {
    BOOST_TEST((keys_of(document) == strings{"model", "tensors", "bytes", "policy", "tp", "rounds",
                                             "workers", "trainer_digest", "verified"}));
    BOOST_TEST(document.at("model").as_string() == files.model);
    BOOST_TEST(number(document.at("tensors")) == files.tensors.size());
    BOOST_TEST(number(document.at("bytes")) == bytes_of(files.tensors));
    BOOST_TEST(document.at("verified").as_bool());
    BOOST_TEST(is_digest(document.at("trainer_digest")));
    auto const& all_rounds = document.at("rounds").as_array();
    BOOST_REQUIRE_EQUAL(all_rounds.size(), rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
        check_round(all_rounds[i].as_object(), engine, transport, static_cast<int>(i) + 1,
                    bytes_of(files.tensors));
    }
    auto const& all_workers = document.at("workers").as_array();
    BOOST_REQUIRE_EQUAL(all_workers.size(), workers);
    for (std::size_t i = 0; i < workers; ++i) {
        auto const& worker = all_workers[i].as_object();
        BOOST_TEST((keys_of(worker) == strings{"rank", "digest", "version"}));
        BOOST_TEST(number(worker.at("rank")) == i + 1);
        BOOST_TEST(worker.at("digest").as_string() == document.at("trainer_digest").as_string());
        BOOST_TEST(number(worker.at("version")) == rounds);
    }
}

std::string digest_of(json::object const& document) {
    return std::string{document.at("trainer_digest").as_string()};
}

/// Bytes of the tensor in a file that the program wrote.
std::string bytes_in(std::string const& file, std::string const& name) {
    auto const all = read_file(file);
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof length);
    auto const header = json::parse(all.substr(8, length)).as_object();
    auto const& offsets = header.at(name).at("data_offsets");
    auto const begin = number(offsets.at(0));
    return all.substr(8 + length + begin, number(offsets.at(1)) - begin);
}

std::size_t elements_that_differ(std::string const& a, std::string const& b,
                                 std::size_t item_size) {
    BOOST_REQUIRE_EQUAL(a.size(), b.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); i += item_size) {
        count += a.compare(i, item_size, b, i, item_size) != 0 ? 1 : 0;
    }
    return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demo)

BOOST_AUTO_TEST_CASE(every_engine_over_every_transport) {
    demo_files const files;
    for (std::string const transport : {"local", "gloo"}) {
        for (std::string const engine : {"dense", "packed"}) {
            BOOST_TEST_CONTEXT(engine << " over " << transport) {
                auto const document =
                    files.document({"--transport", transport, "--engine", engine});
                check_document(document, files, engine, transport, 3, 2);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(packed_over_gloo_is_the_default) {
    demo_files const files;
    check_document(files.document({}), files, "packed", "gloo", 3, 2);
}

BOOST_AUTO_TEST_CASE(from_one_worker_to_many) {
    demo_files const files;
    check_document(files.document({"--workers", "1", "--rounds", "1"}), files, "packed", "gloo", 1,
                   1);
    check_document(files.document({"--workers", "5", "--rounds", "2"}), files, "packed", "gloo", 2,
                   5);
    check_document(files.document({"--workers", "9", "--rounds", "2", "--transport", "local"}),
                   files, "packed", "local", 2, 9);
}

BOOST_AUTO_TEST_CASE(the_text_has_a_row_a_round_and_says_what_is_proven) {
    demo_files const files;
    auto const run = files.demo({"--rounds", "2", "--transport", "local"});
    BOOST_TEST(run.exit_code == 0);
    auto const lines = messages(run.out);
    BOOST_TEST(lines[0] == "model    " + files.model);
    BOOST_TEST(lines[1] == "         9 tensors, 1,123,182 bytes");
    BOOST_TEST(lines[2] == "workers  2 threads over local, engine packed, policy in_place");
    BOOST_TEST(lines[3] == "change   0.02 of the elements before each round, seed 1");
    auto const head =
        std::ranges::find_if(lines, [](auto const& l) { return l.starts_with("round"); });
    BOOST_REQUIRE((head != lines.end() && lines.end() - head == 5));
    for (std::string const word :
         {"version", "bytes", "wire bytes", "seconds", "GB/s", "of memcpy"}) {
        BOOST_TEST(head->find(word) != std::string::npos, word);
    }
    BOOST_TEST(head[1].starts_with("    1        1  1,123,182 "));
    BOOST_TEST(head[2].starts_with("    2        2  1,123,182 "));
    auto const digest = head[2].substr(head[2].size() - 16);
    BOOST_TEST(head[4] ==
               "verified: all 2 workers hold version 2 with the trainer's digest " + digest);
}

BOOST_AUTO_TEST_CASE(on_a_terminal_there_is_a_bar_and_the_table_comes_after_it) {
    demo_files const files;
    terminal const screen;
    auto const command =
        "TERM=xterm; export TERM; exec \"$WEIGHTCAST_PROGRAM\" demo --rounds 2 --model '" +
        files.model + "' 2>'" + screen.path() + "'";
    child_process only_errors{"shell", {command}};
    auto const run = finish(only_errors);
    BOOST_TEST(run.exit_code == 0);
    BOOST_TEST(messages(run.out).size() == 10U);  // as without a terminal
    auto const drawn = screen.shown();
    BOOST_TEST(drawn.find("rank 2 pid ") != std::string::npos);
    BOOST_TEST(drawn.find("\rpayload: 1.12 MB in ") != std::string::npos, drawn);

    child_process both{"shell", {command + " >&2"}};
    BOOST_TEST(finish(both).exit_code == 0);
    auto const all = screen.shown();
    auto const last_bar = all.rfind("\rpayload: ");
    auto const head = all.find("round  version");
    BOOST_REQUIRE(last_bar != std::string::npos);
    BOOST_REQUIRE(head != std::string::npos);
    BOOST_TEST(last_bar < head);
    BOOST_TEST(all.find("verified: all 2 workers") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(every_rank_says_which_process_it_is) {
    demo_files const files;
    for (std::string const transport : {"local", "gloo"}) {
        auto const run = files.demo({"--workers", "3", "--rounds", "1", "--transport", transport});
        BOOST_REQUIRE_EQUAL(run.exit_code, 0);
        BOOST_TEST(messages(run.err).empty(), run.err);
        std::set<std::string> pids;
        for (int rank = 0; rank <= 3; ++rank) {
            auto const word = "rank " + std::to_string(rank) + " pid ";
            auto const at = run.err.find(word);
            BOOST_REQUIRE_MESSAGE(at != std::string::npos, word);
            auto const begin = at + word.size();
            pids.insert(run.err.substr(begin, run.err.find('\n', begin) - begin));
        }
        BOOST_TEST(pids.size() == (transport == "local" ? 1U : 4U));
    }
}

BOOST_AUTO_TEST_CASE(without_changes_workers_hold_the_file) {
    for (std::string const transport : {"local", "gloo"}) {
        demo_files const files;
        auto const run = files.demo({"--change", "0", "--dump", files.folder / "dump",
                                     "--transport", transport, "--rounds", "1"});
        BOOST_TEST(run.exit_code == 0);
        for (int const rank : {1, 2}) {
            BOOST_TEST(run_program({"verify", files.model, files.received(rank)}).exit_code == 0);
        }
        BOOST_TEST(!std::filesystem::exists(files.received(0)));
        BOOST_TEST(!std::filesystem::exists(files.received(3)));
    }
}

BOOST_AUTO_TEST_CASE(dumps_of_all_workers_are_equal_and_replace_what_was_there) {
    demo_files const files;
    std::filesystem::create_directory(files.folder / "dump");
    write_file(files.received(1), "left over");
    auto const document = files.document({"--dump", files.folder / "dump", "--workers", "3"});
    for (int const rank : {2, 3}) {
        auto const run = run_program({"verify", files.received(1), files.received(rank)});
        BOOST_TEST(run.exit_code == 0);
        BOOST_TEST(run.out.find("digest " + digest_of(document)) != std::string::npos);
    }
    BOOST_TEST(run_program({"verify", files.model, files.received(1)}).exit_code == 1);
    // nothing else is left there
    auto const folder = std::filesystem::directory_iterator{files.folder / "dump"};
    BOOST_TEST(std::distance(begin(folder), end(folder)) == 3);
}

BOOST_AUTO_TEST_CASE(the_fraction_that_changes_is_exact) {
    demo_files const files{{made_tensor("a", "F32", {1000}, 4),
                            made_tensor("b", "BF16", {7, 100}, 2),
                            made_tensor("c", "BOOL", {300}, 1)}};
    for (auto const& [fraction, changes] : std::vector<std::pair<std::string, std::size_t>>{
             {"0", 0}, {"1e-6", 1}, {"0.25", 500}, {"1", 2000}}) {
        BOOST_REQUIRE(files
                          .demo({"--change", fraction, "--rounds", "1", "--transport", "local",
                                 "--workers", "1", "--dump", files.folder / "dump"})
                          .exit_code == 0);
        std::size_t found = 0;
        for (auto const& t : files.tensors) {
            auto const item = t.type == "F32" ? 4U : t.type == "BF16" ? 2U : 1U;
            found += elements_that_differ(t.bytes, bytes_in(files.received(1), t.name), item);
        }
        BOOST_TEST(found == changes, fraction);
        auto const flags = bytes_in(files.received(1), "c");
        BOOST_TEST(std::ranges::all_of(flags, [](char c) { return c == 0 || c == 1; }));
    }
}

BOOST_AUTO_TEST_CASE(the_seed_alone_decides_what_changes) {
    demo_files const files;
    auto const with = [&](child_arguments more) {
        more.insert(more.end(), {"--rounds", "2", "--workers", "1"});
        return digest_of(files.document(more));
    };
    auto const first = with({"--seed", "7", "--transport", "local"});
    BOOST_TEST(first == with({"--seed", "7", "--transport", "gloo", "--engine", "dense"}));
    BOOST_TEST(first != with({"--seed", "8", "--transport", "local"}));
    BOOST_TEST(first != with({"--seed", "7", "--transport", "local", "--change", "0.03"}));
}

BOOST_AUTO_TEST_CASE(each_round_changes_the_model) {
    demo_files const files;
    std::set<std::string> digests;
    for (std::string const rounds : {"1", "2", "3"}) {
        digests.insert(digest_of(files.document({"--rounds", rounds, "--transport", "local"})));
    }
    BOOST_TEST(digests.size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_worker_that_corrupts_one_byte_is_found) {
    demo_files const files;
    for (std::string const transport : {"local", "gloo"}) {
        auto const run = files.demo({"--corrupt-one-byte", "--json", "--transport", transport});
        BOOST_TEST(run.exit_code == 1);
        auto const lines = messages(run.err);
        BOOST_REQUIRE_EQUAL(lines.size(), 1U);
        BOOST_TEST(lines[0].starts_with("weightcast: round 3: rank 1"), lines[0]);
        BOOST_TEST(lines[0].find("tensor 'layers.0.large' has digest ") != std::string::npos);
        auto const document = json_of(run);
        BOOST_TEST(!document.at("verified").as_bool());
        BOOST_TEST(document.at("rounds").as_array().size() == 3U);
        auto const& workers = document.at("workers").as_array();
        BOOST_TEST(workers[0].at("digest").as_string() != digest_of(document));
        BOOST_TEST(workers[1].at("digest").as_string() == digest_of(document));
    }
}

BOOST_AUTO_TEST_CASE(what_was_corrupted_is_one_byte) {
    demo_files const files;
    auto const run = files.demo({"--corrupt-one-byte", "--rounds", "1", "--transport", "local"});
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.out.find("verified") == std::string::npos);
    BOOST_TEST(run.err.find("more tensor") == std::string::npos, run.err);
}

BOOST_AUTO_TEST_CASE(under_shadow_a_reader_goes_on_and_sees_no_mix) {
    demo_files const files;
    for (std::string const transport : {"local", "gloo"}) {
        auto const document = files.document({"--policy", "shadow", "--transport", transport});
        BOOST_TEST(document.at("verified").as_bool());
        BOOST_TEST(document.at("policy").as_string() == "shadow");
        for (auto const& worker : document.at("workers").as_array()) {
            BOOST_TEST(
                (keys_of(worker.as_object()) == strings{"rank", "digest", "version", "snapshots"}));
            BOOST_TEST(worker.at("digest").as_string() == digest_of(document));
            BOOST_TEST(number(worker.at("version")) == 3U);
            BOOST_TEST(number(worker.at("snapshots")) >= 3U);  // one a round at least
        }
    }
    auto const same = digest_of(files.document({"--policy", "in_place", "--transport", "local"}));
    BOOST_TEST(same == digest_of(files.document({"--policy", "shadow", "--transport", "local"})));
}

BOOST_AUTO_TEST_CASE(the_text_names_the_policy_and_counts_snapshots) {
    demo_files const files;
    auto const run = files.demo({"--policy", "shadow", "--transport", "local"});
    BOOST_TEST(run.exit_code == 0);
    BOOST_TEST(run.out.find("engine packed, policy shadow\n") != std::string::npos, run.out);
    BOOST_TEST(run.out.find(" snapshots read meanwhile, each of one version\n") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(under_shadow_what_is_served_is_dumped_and_corrupted) {
    demo_files const files;
    for (std::string const rounds : {"1", "2"}) {  // the two sets of memory
        BOOST_TEST(files
                       .demo({"--policy", "shadow", "--change", "0", "--rounds", rounds, "--dump",
                              files.folder / "dump"})
                       .exit_code == 0);
        BOOST_TEST(run_program({"verify", files.model, files.received(2)}).exit_code == 0);
        auto const run = files.demo({"--policy", "shadow", "--corrupt-one-byte", "--rounds", rounds,
                                     "--transport", "local"});
        BOOST_TEST(run.exit_code == 1);
        BOOST_TEST(run.err.find("rank 1 holds other bytes than the trainer") != std::string::npos,
                   run.err);
    }
}

BOOST_AUTO_TEST_CASE(tensors_without_bytes_are_a_model_too) {
    demo_files const files{{made_tensor("a", "F32", {0}, 4), made_tensor("b", "I8", {3, 0, 2}, 1)}};
    auto const run = files.demo({"--rounds", "1"});  // no bytes, no update: and no success
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.find("round 1: nothing was updated") != std::string::npos, run.err);
    check_refused(files.demo({"--corrupt-one-byte"}), {"--corrupt-one-byte", files.model});
}

BOOST_AUTO_TEST_CASE(one_tiny_tensor) {
    demo_files const files{{made_tensor("scalar", "U8", {}, 1)}};
    for (std::string const engine : {"dense", "packed"}) {
        check_document(files.document({"--engine", engine, "--rounds", "1"}), files, engine, "gloo",
                       1, 2);
    }
}

BOOST_AUTO_TEST_CASE(files_that_hold_no_model) {
    demo_files const files;
    auto const none = files.folder / "none.safetensors";
    check_refused(run_program({"demo", "--model", none}), {none});
    auto const cut = files.folder / "cut.safetensors";
    auto const whole = read_file(files.model);
    write_file(cut, whole.substr(0, whole.size() - 1));
    check_refused(run_program({"demo", "--model", cut, "--json"}), {cut});
    demo_files const empty{std::vector<file_tensor>{}};
    check_refused(empty.demo(), {empty.model, "no tensors"});
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made) {
    demo_files const files;
    check_refused(files.demo({"--dump", files.model}), {"--dump", files.model});
    check_refused(files.demo({"--dump", files.model + "/below"}), {"--dump", files.model});
}

BOOST_AUTO_TEST_CASE(a_dump_that_cannot_be_written) {
    demo_files const files;
    std::filesystem::create_directories(files.received(2));  // a folder where a file should be
    write_file(files.received(2) + "/keep", "");
    for (std::string const transport : {"local", "gloo"}) {
        auto const run = files.demo({"--dump", files.folder / "dump", "--transport", transport});
        BOOST_TEST(run.exit_code == 1);
        BOOST_TEST(run.err.find("rank 2") != std::string::npos, run.err);
        BOOST_TEST(run.err.find("rank-2.safetensors") != std::string::npos, run.err);
        BOOST_TEST(run.out.find("verified") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_trace_has_what_every_rank_did) {
    demo_files const files;
    for (std::string const transport : {"local", "gloo"}) {
        auto const file = files.folder / "trace.json";
        auto const run = files.demo({"--trace", file, "--transport", transport, "--rounds", "2"});
        BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.err);
        std::ifstream in{file};
        std::string const text{std::istreambuf_iterator<char>{in}, {}};
        auto const trace = json::parse(text);
        std::set<std::string> tracks;
        for (auto const& e : trace.at("traceEvents").as_array()) {
            if (e.at("name") != "thread_name") continue;
            tracks.insert(std::to_string(number(e.at("pid"))) + " " +
                          json::value_to<std::string>(e.at("args").at("name")));
        }
        BOOST_TEST(tracks.contains("0 pack"), transport);
        for (auto const* rank : {"0", "1", "2"}) {
            BOOST_TEST(tracks.contains(std::string{rank} + " broadcast"), transport);
            BOOST_TEST(tracks.contains(std::string{rank} + " phases"), transport);
        }
        BOOST_TEST(!std::filesystem::exists(file + ".rank-1"));
        std::filesystem::remove(file);
    }
    auto const nowhere = files.demo({"--trace", files.folder / "none/trace.json"});
    BOOST_TEST(nowhere.exit_code == 2);
    BOOST_TEST(nowhere.err.find("--trace: cannot write") != std::string::npos, nowhere.err);
}

BOOST_AUTO_TEST_SUITE_END()
