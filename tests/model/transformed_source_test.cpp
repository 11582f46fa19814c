// SPDX-License-Identifier: Apache-2.0
// A source over another one: outputs declared ahead, made on the given stream, in memory for a moment.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/model/transformed_source.hpp>

namespace weightcast::test {
namespace {

/// Every float32 becomes its bfloat16 by truncation; others go on as they are; "drop." is not sent at all.
struct cast {
    static std::vector<parameter> outputs(parameter const& input) {
        if (input.name.starts_with("drop.")) return {};
        if (input.type == dtype::float32) return {{input.name, dtype::bfloat16, input.shape}};
        return {input};
    }
    void apply(const_tensor_view<> const& from, parameter const& input, std::size_t,
               tensor_view<> const& to, host_stream_ref stream) const {
        if (input.name == "bad") throw std::runtime_error{"no such cast"};
        auto const* const in = static_cast<std::uint16_t const*>(from.data());
        auto* const out = static_cast<std::uint16_t*>(to.data());
        auto const count = element_count(input.shape);
        if (input.type != dtype::float32) {
            runtime::copy(to.data(), to.where(), from.data(), from.where(),
                          static_cast<std::size_t>(to.bytes()), stream);
        } else {
            runtime::enqueue(stream, [=]() noexcept {
                for (std::uint64_t i = 0; i < count; ++i) out[i] = in[2 * i + 1];
            });
        }
    }
};
/// One tensor to its parts, as many as its first extent.
struct split {
    static std::vector<parameter> outputs(parameter const& input) {
        std::vector<parameter> rows;
        for (std::int64_t i = 0; i < input.shape[0]; ++i) {
            rows.push_back({input.name + "." + std::to_string(i), input.type, {input.shape[1]}});
        }
        return rows;
    }
    static void apply(const_tensor_view<> const& from, parameter const&, std::size_t k,
                      tensor_view<> const& to, host_stream_ref stream) {
        auto const bytes = static_cast<std::size_t>(to.bytes());
        runtime::copy(to.data(), to.where(), static_cast<std::byte const*>(from.data()) + k * bytes,
                      from.where(), bytes, stream);
    }
};
static_assert(WeightTransform<cast, host_runtime> && WeightTransform<split, host_runtime>);
using cast_source = transformed_source<host_runtime, table_source<>, cast>;
static_assert(WeightSource<cast_source, host_runtime>);
static_assert(has_tensor_release<cast_source, host_runtime>);

/// Counts what is asked of it and given back.
class counting_source : public table_source<> {
  public:
    int held = 0;
    int asked = 0;
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        ++held;
        ++asked;
        return table_source<>::tensor(index, stream);
    }
    void release(std::size_t, host_stream_ref) { --held; }
};

/// Refers to a source, so that a test still sees what a transformed_source does to it.
class referred {
  public:
    explicit referred(counting_source& source) : source_{&source} {}
    auto parameters() const { return source_->parameters(); }
    tensor_placement placement(std::size_t i) const { return source_->placement(i); }
    auto tensor(std::size_t i, host_stream_ref stream) { return source_->tensor(i, stream); }
    void release(std::size_t i, host_stream_ref stream) { source_->release(i, stream); }

  private:
    counting_source* source_;
};

contents bytes_of(const_tensor_view<> const& view, host_stream_ref stream) {
    settle(stream);
    auto const* const bytes = static_cast<std::byte const*>(view.data());
    return {bytes, bytes + view.bytes()};
}

BOOST_AUTO_TEST_SUITE(transformed_source_suite)

BOOST_AUTO_TEST_CASE(outputs_are_declared_ahead) {
    placed_bytes const memory{host1, 400, 1};
    table_source<> inner;
    inner.add("a", memory.view(dtype::float32, {4, 5}));
    inner.add("drop.b", memory.view(dtype::float32, {7}));
    inner.add("c", memory.view(dtype::int8, {7}));
    inner.add("t", memory.view(dtype::float32, {3, 4}, {1, 3}));
    cast_source const source{inner, cast{}};
    auto const p = source.parameters();
    BOOST_REQUIRE(p.size() == 3U);
    BOOST_TEST((p[0] == parameter{"a", dtype::bfloat16, {4, 5}}));
    BOOST_TEST((p[1] == parameter{"c", dtype::int8, {7}}));
    BOOST_TEST((p[2] == parameter{"t", dtype::bfloat16, {3, 4}}));
    for (std::size_t i = 0; i < 3; ++i)
        BOOST_TEST((source.placement(i) == tensor_placement{host1, true}));
}

BOOST_AUTO_TEST_CASE(tensors_are_made_on_the_stream_and_on_the_inputs_device) {
    for (auto const where : {cpu_device, host0, host1}) {
        placed_bytes const memory{where, 400, 2};
        table_source<> inner;
        inner.add("c", memory.view(dtype::int8, {7}));
        inner.add("a", memory.view(dtype::float32, {4, 5}));
        cast_source source{inner, cast{}};
        weightcast::stream<runtime> const stream{where};
        stream_blocker<runtime> blocker{stream.ref()};
        auto const made = source.tensor(1, stream.ref());  // returns though the stream is blocked
        BOOST_TEST(made.name == "a");
        BOOST_TEST(made.tensor.where() == where);
        BOOST_TEST(runtime::locate(made.tensor.data()) == where);
        BOOST_TEST((made.tensor.type() == dtype::bfloat16));
        blocker.open();
        auto const all = memory.read();
        contents expected;
        for (std::size_t i = 0; i < 20; ++i)
            expected.insert(expected.end(), {all[4 * i + 2], all[4 * i + 3]});
        BOOST_TEST((bytes_of(made.tensor, stream) == expected));
        source.release(1, stream.ref());
    }
}

BOOST_AUTO_TEST_CASE(one_tensor_becomes_many) {
    placed_bytes const memory{host1, 60, 3};
    table_source<> inner;
    inner.add("qkv", memory.view(dtype::float32, {3, 5}));
    transformed_source<host_runtime, table_source<>, split> source{inner, split{}};
    weightcast::stream<runtime> const stream{host1};
    auto const all = memory.read();
    BOOST_REQUIRE(source.parameters().size() == 3U);
    for (std::size_t i : {2U, 0U, 1U}) {
        auto const made = source.tensor(i, stream.ref());
        BOOST_TEST(made.name == "qkv." + std::to_string(i));
        auto const first = all.begin() + static_cast<long>(20 * i);
        BOOST_TEST((bytes_of(made.tensor, stream) == contents(first, first + 20)));
    }
    for (std::size_t i = 0; i < 3; ++i) source.release(i, stream.ref());
}

BOOST_AUTO_TEST_CASE(memory_lives_from_tensor_to_release) {
    device const where = host2;
    placed_bytes const memory{where, 4000, 4};
    table_source<> inner;
    inner.add("a", memory.view(dtype::float32, {1000}));
    inner.add("b", memory.view(dtype::float32, {500}));
    weightcast::stream<runtime> const stream{where};
    auto const before = runtime::memory(where).active;
    {
        cast_source source{inner, cast{}};
        static_cast<void>(source.tensor(0, stream.ref()));
        BOOST_TEST(runtime::memory(where).active == before + 2000);
        static_cast<void>(source.tensor(1, stream.ref()));
        BOOST_TEST(runtime::memory(where).active == before + 3000);
        source.release(0, stream.ref());
        BOOST_TEST(runtime::memory(where).active == before + 1000);
        source.release(0, stream.ref());  // of what is not there: nothing
        static_cast<void>(
            source.tensor(1, stream.ref()));  // asked again: the new one replaces the old
        BOOST_TEST(runtime::memory(where).active == before + 1000);
    }
    BOOST_TEST(runtime::memory(where).active == before);
    settle(stream);
}

BOOST_AUTO_TEST_CASE(
    an_inner_tensor_made_for_the_moment_is_released_for_each_output_and_after_a_failure) {
    placed_bytes const memory{host1, 60, 5};
    counting_source inner;
    inner.add("good", memory.view(dtype::float32, {15}));
    inner.add("bad", memory.view(dtype::float32, {15}));
    transformed_source<host_runtime, referred, cast> source{referred{inner}, cast{}};
    weightcast::stream<runtime> const stream{host1};
    static_cast<void>(source.tensor(0, stream.ref()));
    BOOST_TEST(inner.held == 0);
    auto const before = runtime::memory(host1).active;
    BOOST_CHECK_EXCEPTION(static_cast<void>(source.tensor(1, stream.ref())), std::runtime_error,
                          says("no such cast"));
    BOOST_TEST(inner.asked == 2);
    BOOST_TEST(inner.held == 0);
    BOOST_TEST(runtime::memory(host1).active == before);
    source.release(0, stream.ref());
    settle(stream);
}

BOOST_AUTO_TEST_CASE(tensors_without_bytes_and_without_an_index) {
    placed_bytes const memory{host2, 400, 6};
    table_source<> inner;
    inner.add("empty", tensor_view<>{nullptr, dtype::float32, {0, 3}, host2});
    inner.add(
        "somewhere",
        tensor_view<>{
            memory.data(), dtype::float32, {10}, device{device_kind::host, device::unresolved}});
    cast_source source{inner, cast{}};
    weightcast::stream<runtime> const stream{host2};
    auto const empty = source.tensor(0, stream.ref());
    BOOST_TEST((empty.tensor.shape() == extents{0, 3}));
    BOOST_TEST(source.tensor(1, stream.ref()).tensor.where() == host2);
    source.release(0, stream.ref());
    source.release(1, stream.ref());
    settle(stream);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
