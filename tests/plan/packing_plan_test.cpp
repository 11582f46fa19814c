// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <weightcast/plan/packing_plan.hpp>

#include <support/tensor_list.hpp>

namespace {

using namespace weightcast;
using test::random_tensors;
using test::tensor_list;
using plan = weightcast::packing_plan;

constexpr auto never_direct = std::numeric_limits<std::uint64_t>::max();

packing_options small_chunks(std::uint64_t chunk, std::uint64_t direct_from = never_direct) {
    return {.chunk_bytes = chunk, .direct_from = direct_from};
}

std::vector<std::uint64_t> chunk_sizes(plan const& made) {
    std::vector<std::uint64_t> sizes;
    for (auto const& chunk : made.chunks()) sizes.push_back(chunk.bytes);
    return sizes;
}

using numbers = std::vector<std::uint64_t>;

// --- what must hold of every native plan ---

/// The sentence that a plan breaks, or nothing.
std::string broken_law(plan const& made, std::span<planned_tensor const> tensors) {
    auto const& options = made.options();
    std::vector<std::uint64_t> covered(tensors.size());
    std::map<int, std::size_t> last_tensor;
    std::uint64_t wire = 0;
    for (auto const& chunk : made.chunks()) {
        if (chunk.members.empty() || chunk.bytes == 0) return "a chunk moves nothing";
        if (chunk.bytes > options.chunk_bytes) return "a chunk is over the bound";
        std::uint64_t end = 0;
        for (auto const& member : chunk.members) {
            auto const& tensor = tensors[member.tensor];
            if (tensor.root != chunk.root) return "a chunk mixes roots";
            if (member.offset % options.alignment != 0) return "a member is not aligned";
            if (member.offset < end) return "members overlap";
            if (member.offset - end >= options.alignment)
                return "padding is longer than it has to be";
            if (member.first_byte != covered[member.tensor])
                return "a tensor's pieces are out of order";
            if (member.bytes == 0) return "a member moves nothing";
            if (member.first_byte % item_size(tensor.type) != 0) return "an element is cut";
            if (tensor.bytes <= options.chunk_bytes && member.bytes != tensor.bytes) {
                return "a tensor that fits a chunk is cut";
            }
            if (last_tensor[chunk.root] > member.tensor) return "a root's tensors are out of order";
            last_tensor[chunk.root] = member.tensor;
            covered[member.tensor] += member.bytes;
            end = member.offset + member.bytes;
        }
        if (end != chunk.bytes) return "a chunk's size is not where its last member ends";
        wire += chunk.bytes;
    }
    std::size_t previous = 0;
    for (auto const& whole : made.direct()) {
        auto const& tensor = tensors[whole.tensor];
        if (!tensor.contiguous) return "a strided tensor goes direct";
        if (tensor.bytes < options.direct_from) return "a small tensor goes direct";
        if (tensor.root != whole.root) return "a direct tensor has another root";
        if (whole.tensor < previous) return "direct tensors are out of order";
        previous = whole.tensor;
        covered[whole.tensor] += tensor.bytes;
        wire += tensor.bytes;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (covered[i] != tensors[i].bytes) return "a tensor is not covered exactly once";
    }
    if (wire != made.wire_bytes()) return "wire_bytes is not what enters the transfers";
    return {};
}

// --- vLLM's rule, written again from its description ---

struct peer_chunk {
    std::vector<std::size_t> tensors;
    std::uint64_t bytes = 0;
};
std::vector<peer_chunk> as_the_peer_cuts(std::span<planned_tensor const> tensors,
                                         std::uint64_t buffer) {
    std::vector<peer_chunk> broadcasts;
    std::size_t next = 0;
    while (next < tensors.size()) {
        peer_chunk gathered;
        while (next < tensors.size()) {
            gathered.tensors.push_back(next);
            gathered.bytes += tensors[next].bytes;
            ++next;
            if (gathered.bytes > buffer) break;
        }
        broadcasts.push_back(gathered);
    }
    return broadcasts;
}
std::string difference(plan const& made, std::span<planned_tensor const> tensors,
                       std::uint64_t buffer) {
    auto const expected = as_the_peer_cuts(tensors, buffer);
    if (!made.direct().empty()) return "something goes direct";
    if (made.chunks().size() != expected.size()) return "another number of chunks";
    for (std::size_t c = 0; c < expected.size(); ++c) {
        auto const& chunk = made.chunks()[c];
        if (chunk.bytes != expected[c].bytes) return "another chunk size";
        if (chunk.members.size() != expected[c].tensors.size()) return "another number of members";
        std::uint64_t offset = 0;
        for (std::size_t m = 0; m < chunk.members.size(); ++m) {
            auto const index = expected[c].tensors[m];
            if (chunk.members[m] != chunk_member{index, 0, tensors[index].bytes, offset}) {
                return "another member";
            }
            offset += tensors[index].bytes;
        }
    }
    return {};
}

// --- bytes through a plan ---

using bytes = std::vector<std::uint8_t>;

/// Packs and unpacks by the plan alone, as two ranks would; true when every byte arrives.
bool round_trips(plan const& made, std::span<planned_tensor const> tensors) {
    std::vector<bytes> sent;
    std::vector<bytes> received;
    std::mt19937 random{7};
    for (auto const& tensor : tensors) {
        bytes content(tensor.bytes);
        for (auto& b : content) b = static_cast<std::uint8_t>(random());
        sent.push_back(content);
        received.emplace_back(tensor.bytes, std::uint8_t{0});
    }
    for (auto const& chunk : made.chunks()) {
        bytes buffer(chunk.bytes, std::uint8_t{0xdb});
        for (auto const& m : chunk.members) {
            std::copy_n(sent[m.tensor].begin() + static_cast<long>(m.first_byte), m.bytes,
                        buffer.begin() + static_cast<long>(m.offset));
        }
        for (auto const& m : chunk.members) {
            std::copy_n(buffer.begin() + static_cast<long>(m.offset), m.bytes,
                        received[m.tensor].begin() + static_cast<long>(m.first_byte));
        }
    }
    for (auto const& whole : made.direct()) received[whole.tensor] = sent[whole.tensor];
    return sent == received;
}

BOOST_AUTO_TEST_SUITE(packing_plan)

BOOST_AUTO_TEST_CASE(no_tensors_make_no_transfers) {
    for (auto const& options : {packing_options{}, vllm_packing()}) {
        plan const made{{}, options};
        BOOST_TEST(made.chunks().empty());
        BOOST_TEST(made.direct().empty());
        BOOST_TEST(made.wire_bytes() == 0U);
        BOOST_TEST(made.slot_bytes() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_plan_made_of_nothing_is_usable) {
    plan const empty;
    BOOST_TEST(empty.chunks().empty());
    BOOST_TEST(empty.wire_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(small_ones_are_packed_and_large_ones_go_direct_after_them) {
    tensor_list list;
    list.add_bytes(2 << 20).add_bytes(10).add_bytes((1 << 20) - 1).add_bytes(1 << 20).add_bytes(3);
    plan const made{list.view()};
    BOOST_TEST(broken_law(made, list.view()) == "");
    BOOST_TEST(made.chunks().size() == 1U);
    std::vector<direct_tensor> const expected{{0, 0}, {3, 0}};
    BOOST_TEST((std::vector(made.direct().begin(), made.direct().end()) == expected));
    BOOST_TEST(made.slot_bytes() == packing_options{}.chunk_bytes);
}

BOOST_AUTO_TEST_CASE(a_strided_tensor_is_staged_whatever_its_size) {
    tensor_list list;
    list.add("strided", dtype::float32, {1 << 20}, false).add("dense", dtype::float32, {1 << 20});
    plan const made{list.view()};
    BOOST_TEST(broken_law(made, list.view()) == "");
    BOOST_TEST(made.chunks().size() == 1U);
    BOOST_TEST(made.direct().size() == 1U);
}

BOOST_AUTO_TEST_CASE(everything_may_be_direct_or_packed) {
    tensor_list list;
    list.add_bytes(1).add_bytes(0).add_bytes(5'000'000);
    BOOST_TEST((plan{list.view(), small_chunks(64, 0)}.direct().size()) == 2U);
    plan const packed{list.view(), small_chunks(4096)};
    BOOST_TEST(packed.direct().empty());
    BOOST_TEST(broken_law(packed, list.view()) == "");
}

BOOST_AUTO_TEST_CASE(b43_a_scalar_is_packed_like_any_other) {
    tensor_list list;
    list.add("a", dtype::float32, {}).add("b", dtype::bfloat16, {3});
    list.add("c", dtype::int64, {}).add("d", dtype::uint8, {5});
    for (auto const& options : {packing_options{}, vllm_packing()}) {
        plan const made{list.view(), options};
        BOOST_TEST(made.chunks().size() == 1U);
        BOOST_TEST(made.chunks().front().members.size() == 4U);
        BOOST_TEST(round_trips(made, list.view()));
    }
    plan const native{list.view()};
    BOOST_TEST(broken_law(native, list.view()) == "");
    BOOST_TEST(native.wire_bytes() == 197U);
}

BOOST_AUTO_TEST_CASE(b49_tensors_without_bytes_are_in_no_native_transfer) {
    tensor_list list;
    list.add("z0", dtype::float32, {0})
        .add("a", dtype::float32, {2})
        .add("z1", dtype::int8, {0, 4});
    list.add("z2", dtype::float64, {3, 0, 2}, true, 1).add("b", dtype::uint8, {3}, true, 1);
    for (auto const direct_from : {std::uint64_t{0}, std::uint64_t{4}, never_direct}) {
        plan const made{list.view(), small_chunks(64, direct_from)};
        BOOST_TEST(broken_law(made, list.view()) == "");
        BOOST_TEST(round_trips(made, list.view()));
    }
    tensor_list none;
    none.add("z0", dtype::float32, {0}).add("z1", dtype::float32, {0, 7}, true, 3);
    plan const nothing{none.view(), small_chunks(64, 0)};
    BOOST_TEST(nothing.chunks().empty());
    BOOST_TEST(nothing.direct().empty());
    BOOST_TEST(nothing.digest() != plan{}.digest());
}

BOOST_AUTO_TEST_CASE(b55_every_member_is_aligned_to_its_type) {
    tensor_list list;
    list.add("a", dtype::float16, {3}).add("b", dtype::float32, {2}).add("c", dtype::uint8, {1});
    list.add("d", dtype::float64, {1}).add("e", dtype::bool_, {3}).add("f", dtype::complex64, {1});
    for (std::uint64_t const alignment : {8U, 64U, 256U}) {
        plan const made{list.view(),
                        {.chunk_bytes = 4096, .alignment = alignment, .direct_from = never_direct}};
        BOOST_TEST(broken_law(made, list.view()) == "");
        BOOST_TEST(round_trips(made, list.view()));
        BOOST_TEST(misaligned_members(made, list.view()).empty());
    }
}

BOOST_AUTO_TEST_CASE(b56_a_tensor_larger_than_a_chunk_is_cut) {
    tensor_list list;
    for (auto const size : {10U, 64U, 65U, 1000U}) list.add_bytes(size);
    plan const made{list.view(), small_chunks(64)};
    BOOST_TEST(broken_law(made, list.view()) == "");
    BOOST_TEST(round_trips(made, list.view()));
    BOOST_TEST(made.slot_bytes() == 64U);
    BOOST_TEST(made.wire_bytes() == 1139U);
}

BOOST_AUTO_TEST_CASE(b56_sizes_around_the_bound) {
    for (auto const size : {127U, 128U, 129U, 191U, 192U, 193U, 255U, 256U, 257U}) {
        for (auto const before : {0U, 1U, 63U, 64U, 65U, 127U, 128U}) {
            tensor_list list;
            list.add_bytes(before).add_bytes(size).add_bytes(1);
            for (auto const chunk : {128U, 130U, 191U}) {
                plan const made{list.view(), small_chunks(chunk)};
                BOOST_TEST(broken_law(made, list.view()) == "",
                           before << ", " << size << " in " << chunk << ": "
                                  << broken_law(made, list.view()));
                BOOST_TEST(round_trips(made, list.view()));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cut_tensor_fills_the_open_chunk_and_leaves_the_rest_to_others) {
    tensor_list list;
    list.add_bytes(64).add_bytes(300).add_bytes(100);
    plan const made{list.view(), small_chunks(192)};
    BOOST_TEST(chunk_sizes(made) == (numbers{192, 172, 100}), boost::test_tools::per_element());
    std::vector<chunk_member> const second{{1, 128, 172, 0}};
    BOOST_TEST((made.chunks()[1].members == second));
    list.tensors().back().shape = {60};
    list.tensors().back().bytes = 60;
    plan const shared{list.view(), small_chunks(256)};
    BOOST_TEST(chunk_sizes(shared) == (numbers{256, 188}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_element_is_cut) {
    tensor_list list;
    list.add("a", dtype::complex64, {100}, false).add("b", dtype::float64, {33}, false);
    for (auto const chunk : {67U, 100U, 129U, 203U}) {
        plan const made{list.view(), small_chunks(chunk)};
        BOOST_TEST(broken_law(made, list.view()) == "");
    }
}

BOOST_AUTO_TEST_CASE(chunks_never_mix_roots) {
    tensor_list list;
    for (int i = 0; i < 12; ++i) list.add_bytes(40, i % 3);
    plan const made{list.view(), small_chunks(128)};
    BOOST_TEST(broken_law(made, list.view()) == "");
    // 40-byte members at multiples of 64: two a chunk, so 2 chunks a root, though the roots alternate.
    BOOST_TEST(made.chunks().size() == 6U);
    std::vector<int> roots;
    for (auto const& chunk : made.chunks()) roots.push_back(chunk.root);
    BOOST_TEST(roots == (std::vector<int>{0, 1, 2, 0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_random_native_plan_keeps_the_laws) {
    std::mt19937 random{20250101};
    for (int round = 0; round < 400; ++round) {
        auto list = random_tensors(random, random() % 60, 1 + static_cast<int>(random() % 4));
        std::uint64_t const alignment = std::uint64_t{8} << (random() % 5);
        packing_options const options{
            .chunk_bytes = alignment + random() % 2000,
            .alignment = alignment,
            .direct_from = random() % 3 == 0 ? never_direct : random() % 3000,
            .ring = 1 + random() % 3};
        plan const made{list.view(), options};
        auto const law = broken_law(made, list.view());
        BOOST_TEST(law == "", "round " << round << ": " << law);
        BOOST_TEST(round_trips(made, list.view()));
    }
}

BOOST_AUTO_TEST_CASE(every_random_vllm_plan_is_the_peers) {
    std::mt19937 random{42};
    for (int round = 0; round < 400; ++round) {
        auto list = random_tensors(random, random() % 60, 1);
        std::uint64_t const buffer = 1 + random() % 3000;
        plan const made{list.view(), vllm_packing(buffer)};
        auto const different = difference(made, list.view(), buffer);
        BOOST_TEST(different == "", "round " << round << ": " << different);
        BOOST_TEST(round_trips(made, list.view()));
    }
}

struct vllm_row {
    char const* what;
    std::uint64_t buffer;
    numbers tensors;
    numbers chunks;
};
vllm_row const vllm_table[] = {
    {"nothing", 100, {}, {}},
    {"a total equal to the buffer stays open", 100, {60, 40}, {100}},
    {"and takes one more", 100, {60, 40, 1}, {101}},
    {"one byte over closes", 100, {60, 41, 1}, {101, 1}},
    {"one byte under stays open", 100, {60, 39, 1, 1}, {101}},
    {"a large tensor ends its chunk", 100, {10, 500, 7}, {510, 7}},
    {"a large tensor first", 100, {500, 7}, {500, 7}},
    {"two large tensors", 100, {500, 500}, {500, 500}},
    {"closed by the last one: no empty tail", 100, {101}, {101}},
    {"only tensors without bytes: one broadcast of count 0", 100, {0, 0, 0}, {0}},
    {"a tail without bytes: one broadcast of count 0", 100, {101, 0, 0}, {101, 0}},
    {"no bytes in the open chunk change nothing", 100, {50, 0, 0, 51}, {101}},
    {"nor at its bound", 100, {100, 0, 1}, {101}},
    {"the smallest buffer", 1, {1, 1, 1}, {2, 1}},
};

BOOST_AUTO_TEST_CASE(the_peers_rule_at_its_edges) {
    for (auto const& row : vllm_table) {
        tensor_list list;
        for (auto const size : row.tensors) list.add_bytes(size);
        plan const made{list.view(), vllm_packing(row.buffer)};
        BOOST_TEST_CONTEXT(row.what) {
            BOOST_TEST(chunk_sizes(made) == row.chunks, boost::test_tools::per_element());
            BOOST_TEST(difference(made, list.view(), row.buffer) == "");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_vllm_slot_grows_to_the_largest_chunk) {
    tensor_list list;
    list.add_bytes(60).add_bytes(90).add_bytes(10);
    BOOST_TEST((plan{list.view(), vllm_packing(100)}.slot_bytes()) == 150U);
}

BOOST_AUTO_TEST_CASE(the_vllm_layout_has_one_root) {
    tensor_list list;
    list.add_bytes(1, 2).add_bytes(1, 2);
    BOOST_TEST((plan{list.view(), vllm_packing()}.chunks().front().root) == 2);
    list.add_bytes(1, 0);
    BOOST_CHECK_EXCEPTION((plan{list.view(), vllm_packing()}), bad_argument, [](auto const& e) {
        std::string const text = e.what();
        return text.find("'b2' is held by rank 0, the first by rank 2") != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(members_that_the_peer_cannot_view_are_reported) {
    tensor_list list;
    list.add("a", dtype::float16, {3}).add("b", dtype::float32, {2}).add("c", dtype::uint8, {1});
    list.add("d", dtype::float64, {0}).add("e", dtype::bool_, {1}).add("f", dtype::int64, {1});
    plan const made{list.view(), vllm_packing()};
    std::vector<misaligned_member> const expected{{0, 1, 6}, {0, 3, 15}};
    BOOST_TEST((misaligned_members(made, list.view()) == expected));
    // cut behind "b": the next chunk begins anew, at offset 0
    plan const cut{list.view(), vllm_packing(10)};
    std::vector<misaligned_member> const others{{0, 1, 6}, {1, 3, 1}, {1, 5, 2}};
    BOOST_TEST((misaligned_members(cut, list.view()) == others));
}

BOOST_AUTO_TEST_CASE(options_and_tensors_are_checked) {
    tensor_list list;
    list.add_bytes(5);
    BOOST_CHECK_THROW((plan{list.view(), small_chunks(63)}), bad_argument);
    BOOST_CHECK_THROW((plan{list.view(), vllm_packing(0)}), bad_argument);
    list.tensors().front().bytes = 6;
    BOOST_CHECK_THROW((plan{list.view()}), bad_input);
    BOOST_CHECK_THROW((plan{list.view(), vllm_packing()}), bad_input);
}

BOOST_AUTO_TEST_CASE(bytes_that_do_not_fit_in_64_bits_are_refused) {
    tensor_list list;
    for (int i = 0; i < 3; ++i) list.add("w", dtype::int8, {INT64_MAX});
    BOOST_CHECK_THROW((plan{list.view()}), bad_input);
    BOOST_CHECK_THROW((plan{list.view(), vllm_packing(std::numeric_limits<std::uint64_t>::max())}),
                      bad_input);
}

BOOST_AUTO_TEST_CASE(tensors_past_4_gib_are_planned) {
    tensor_list list;
    list.add("strided", dtype::float32, {1 << 20, 3 << 10}, false);
    list.add("dense", dtype::float32, {1 << 20, 3 << 10});
    plan const made{list.view()};
    BOOST_TEST(broken_law(made, list.view()) == "");
    BOOST_TEST(made.chunks().size() == 192U);
    BOOST_TEST(made.wire_bytes() == 2U * (std::uint64_t{12} << 30U));
}

// --- the digest: equal for those who can talk, different for all others ---

tensor_list digest_list() {
    tensor_list list;
    list.add("a", dtype::float16, {2, 3})
        .add("b", dtype::float32, {4})
        .add("c", dtype::uint8, {100});
    return list;
}
std::uint64_t digest_of(tensor_list const& list,
                        packing_options const& options = small_chunks(256)) {
    return plan{list.view(), options}.digest();
}

BOOST_AUTO_TEST_CASE(equal_lists_have_equal_digests) {
    BOOST_TEST(digest_of(digest_list()) == digest_of(digest_list()));
    auto options = small_chunks(256);
    options.ring = 5;
    BOOST_TEST(digest_of(digest_list(), options) == digest_of(digest_list()));
}

BOOST_AUTO_TEST_CASE(whatever_both_must_agree_on_changes_the_digest) {
    std::set<std::uint64_t> seen{digest_of(digest_list())};
    std::size_t variants = 1;
    auto const differs = [&](std::uint64_t digest) {
        seen.insert(digest);
        return seen.size() == ++variants;
    };
    auto const with = [](auto const& change) {
        auto list = digest_list();
        change(list.tensors());
        return digest_of(list);
    };
    BOOST_TEST(differs(with([](auto& t) { t[0].name = "A"; })));
    BOOST_TEST(differs(with([](auto& t) { t[0].type = dtype::bfloat16; })));
    BOOST_TEST(differs(with([](auto& t) { t[0].shape = {3, 2}; })));
    BOOST_TEST(differs(with([](auto& t) { t[0].shape = {6}; })));
    BOOST_TEST(differs(with([](auto& t) { t[0].root = 1; })));
    BOOST_TEST(differs(with([](auto& t) { std::swap(t[0], t[1]); })));
    BOOST_TEST(differs(with([](auto& t) { t.pop_back(); })));
    BOOST_TEST(differs(with([](auto& t) { t.push_back(t[0]); })));
    BOOST_TEST(differs(digest_of(digest_list(), small_chunks(128))));
    BOOST_TEST(differs(digest_of(digest_list(), small_chunks(256, 50))));
    BOOST_TEST(differs(digest_of(digest_list(), vllm_packing(256))));
    BOOST_TEST(differs(digest_of(digest_list(), vllm_packing(257))));
    BOOST_TEST(differs(digest_of(
        digest_list(), {.chunk_bytes = 256, .alignment = 32, .direct_from = never_direct})));
}

BOOST_AUTO_TEST_CASE(b58_another_limit_on_the_other_side_shows_before_bytes_move) {
    tensor_list list;
    for (int i = 0; i < 10; ++i) list.add_bytes(30);
    BOOST_TEST(digest_of(list, small_chunks(128)) != digest_of(list, small_chunks(64)));
    BOOST_TEST(digest_of(list, vllm_packing(128)) != digest_of(list, vllm_packing(64)));
}

BOOST_AUTO_TEST_CASE(a_layout_that_is_staged_is_another_plan) {
    tensor_list list;
    list.add("w", dtype::float32, {1 << 18});
    auto const direct = digest_of(list, {});
    list.tensors().front().contiguous = false;
    BOOST_TEST(digest_of(list, {}) != direct);
}

BOOST_AUTO_TEST_CASE(the_root_of_a_tensor_in_no_chunk_is_part_of_it) {
    for (auto const size : {0U, 100U}) {
        tensor_list list;
        list.add_bytes(size, 0);
        auto const options = small_chunks(256, 50);
        auto const of_first = digest_of(list, options);
        list.tensors().front().root = 1;
        BOOST_TEST(digest_of(list, options) != of_first);
    }
}

BOOST_AUTO_TEST_CASE(other_options_show_even_where_they_cut_alike) {
    tensor_list list;
    list.add_bytes(8);
    std::set<std::uint64_t> digests;
    for (auto const& options :
         {packing_options{}, packing_options{.alignment = 32}, packing_options{.direct_from = 9},
          packing_options{.chunk_bytes = 128}}) {
        digests.insert(digest_of(list, options));
    }
    BOOST_TEST(digests.size() == 4U);
}

BOOST_AUTO_TEST_CASE(names_and_their_neighbours_are_told_apart) {
    tensor_list longer;
    longer.add("au", dtype::int8, {1});
    tensor_list shorter;
    shorter.add("a", dtype::uint8, {1});
    BOOST_TEST(digest_of(longer) != digest_of(shorter));
    tensor_list one;
    one.add("ab", dtype::uint8, {1}).add("c", dtype::uint8, {1});
    tensor_list other;
    other.add("a", dtype::uint8, {1}).add("bc", dtype::uint8, {1});
    BOOST_TEST(digest_of(one) != digest_of(other));
}

BOOST_AUTO_TEST_CASE(options_that_the_vllm_layout_does_not_use_change_nothing) {
    auto options = vllm_packing(256);
    options.alignment = 3;
    options.direct_from = 1;
    BOOST_TEST(digest_of(digest_list(), options) == digest_of(digest_list(), vllm_packing(256)));
}

// --- scale ---

/// The least processor time of several tries: what else the machine does counts less.
double seconds_to_plan(std::size_t tensors, packing_options const& options) {
    tensor_list list;
    for (std::size_t i = 0; i < tensors; ++i) {
        list.add("model.layers." + std::to_string(i / 300) + ".mlp.experts." +
                     std::to_string(i % 300) + ".down_proj.weight",
                 dtype::bfloat16, {7, 9}, true, static_cast<int>(i % 64));
    }
    double least = 1e9;
    for (int attempt = 0; attempt < 5; ++attempt) {
        auto const begin = std::clock();
        plan const made{list.view(), options};
        least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
}

BOOST_AUTO_TEST_CASE(more_chunks_than_anybody_needs_are_refused_before_they_are_planned) {
    planned_tensor huge{.name = "w", .type = dtype::uint8, .shape = {std::int64_t{1} << 40}};
    huge.bytes = std::uint64_t{1} << 40U;
    huge.contiguous = false;
    BOOST_CHECK_EXCEPTION(
        (plan{std::vector{huge}, {.chunk_bytes = 64}}), bad_argument, [](bad_argument const& e) {
            std::string const text = e.what();
            return text.find("1099511627776 bytes in chunks of 64") != std::string::npos;
        });
    BOOST_TEST((plan{std::vector{huge}, {}}.chunks().size()) == 16384U);
    huge.contiguous = true;  // goes direct: no chunk at all
    BOOST_TEST((plan{std::vector{huge}, {.chunk_bytes = 64}}.chunks().empty()));
}

BOOST_AUTO_TEST_CASE(b93_the_time_to_plan_is_linear_in_the_names) {
    for (auto const& options : {packing_options{}, packing_options{.chunk_bytes = 128}}) {
        auto const few = seconds_to_plan(2'500, options);
        auto const many = seconds_to_plan(20'000, options);
        // 8 times the names; a quadratic pass takes 64 times as long.
        BOOST_TEST(many < 24 * few, many << " s for 20000 names, " << few << " s for 2500");
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
