// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/dlpack.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "laws/tensor_laws.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using dlpack::device_type;
using dlpack::type_code;
using test::says;

static_assert(!std::copy_constructible<managed_dlpack>);
static_assert(std::is_nothrow_move_constructible_v<managed_dlpack>);
static_assert(std::is_nothrow_move_assignable_v<managed_dlpack>);
static_assert(std::same_as<space_of<managed_dlpack>, dynamic_space>);
static_assert(WritableDeviceTensor<managed_dlpack>);
static_assert(!WritableDeviceTensor<managed_dlpack const>);

// A producer as another framework is one: it counts how often its deleter is called.
struct producer {
    std::array<float, 64> memory{};
    std::vector<std::int64_t> shape{2, 3};
    std::vector<std::int64_t> strides{3, 1};
    dlpack::managed_tensor legacy{};
    dlpack::managed_tensor_versioned versioned{};
    int deleted = 0;

    producer() {
        dlpack::tensor const t{memory.data(), {device_type::cpu, 0}, 2, {type_code::float_, 32, 1},
                               shape.data(),  strides.data(),        0};
        legacy = {t, this, [](dlpack::managed_tensor* self) {
                      ++static_cast<producer*>(self->manager_ctx)->deleted;
                  }};
        versioned = {{1, 1},
                     this,
                     [](dlpack::managed_tensor_versioned* self) {
                         ++static_cast<producer*>(self->manager_ctx)->deleted;
                     },
                     0,
                     t};
    }
    producer(producer const&) = delete;

    dlpack::managed_tensor* of(dlpack::managed_tensor*) { return &legacy; }
    dlpack::managed_tensor_versioned* of(dlpack::managed_tensor_versioned*) { return &versioned; }
    template <class Managed>
    Managed* get() {
        return of(static_cast<Managed*>(nullptr));
    }
};

using forms = boost::mpl::list<dlpack::managed_tensor, dlpack::managed_tensor_versioned>;

// What each of the checks below changes about an otherwise good tensor, in both forms.
template <class E>
void check_refused(auto change, says const& message) {
    producer a;
    change(a.legacy.dl_tensor);
    BOOST_CHECK_EXCEPTION(managed_dlpack{&a.legacy}, E, message);
    BOOST_TEST(a.deleted == 1);
    producer b;
    change(b.versioned.dl_tensor);
    BOOST_CHECK_EXCEPTION(managed_dlpack{&b.versioned}, E, message);
    BOOST_TEST(b.deleted == 1);
}

BOOST_AUTO_TEST_SUITE(dlpack_suite)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_tensor_is_taken_over_without_a_copy, Managed, forms) {
    producer p;
    {
        managed_dlpack tensor{p.get<Managed>()};
        BOOST_TEST(static_cast<bool>(tensor));
        test::check_writable_tensor_laws(tensor);
        auto const view = view_of(tensor);
        BOOST_TEST(view.data() == p.memory.data());
        BOOST_TEST(view.type() == dtype::float32);
        BOOST_TEST(view.shape() == (extents{2, 3}));
        BOOST_TEST(view.strides() == (extents{3, 1}));
        BOOST_TEST(view.where() == cpu_device);
        BOOST_TEST(!tensor.read_only());
        BOOST_TEST(p.deleted == 0);
    }
    BOOST_TEST(p.deleted == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_move_hands_the_deleter_over, Managed, forms) {
    producer p;
    {
        managed_dlpack first{p.get<Managed>()};
        managed_dlpack second{std::move(first)};
        BOOST_TEST(!static_cast<bool>(first));
        BOOST_TEST(first.view().bytes() == 0U);
        BOOST_TEST(first.view().data() == nullptr);
        test::check_tensor_laws(first);
        BOOST_TEST(second.view().data() == p.memory.data());
        BOOST_TEST(p.deleted == 0);
    }
    BOOST_TEST(p.deleted == 1);
}

BOOST_AUTO_TEST_CASE(an_assignment_drops_what_was_there_at_once) {
    producer a;
    producer b;
    managed_dlpack tensor{&a.legacy};
    managed_dlpack other{&b.versioned};
    tensor = std::move(other);
    BOOST_TEST(a.deleted == 1);
    BOOST_TEST(b.deleted == 0);
    BOOST_TEST(tensor.view().data() == b.memory.data());
    auto& itself = tensor;
    tensor = std::move(itself);
    BOOST_TEST(b.deleted == 0);
    BOOST_TEST(tensor.view().data() == b.memory.data());
    other = std::move(tensor);
    BOOST_TEST(b.deleted == 0);
    BOOST_TEST(a.deleted == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_missing_deleter_is_allowed, Managed, forms) {
    producer p;
    p.get<Managed>()->deleter = nullptr;
    { managed_dlpack const tensor{p.get<Managed>()}; }
    BOOST_TEST(p.deleted == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_null_pointer_is_refused, Managed, forms) {
    BOOST_CHECK_EXCEPTION(managed_dlpack{static_cast<Managed*>(nullptr)}, bad_argument,
                          says({"DLPack", "null pointer"}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(null_strides_mean_contiguous, Managed, forms) {
    producer p;
    p.get<Managed>()->dl_tensor.strides = nullptr;
    managed_dlpack const tensor{p.get<Managed>()};
    BOOST_TEST(tensor.view().strides() == (extents{3, 1}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(strides_and_offset_are_honoured, Managed, forms) {
    producer p;
    p.strides = {1, 2};
    p.get<Managed>()->dl_tensor.byte_offset = 8;
    managed_dlpack const tensor{p.get<Managed>()};
    BOOST_TEST(tensor.view().data() == p.memory.data() + 2);
    BOOST_TEST(tensor.view().strides() == (extents{1, 2}));
    BOOST_TEST(!tensor.view().contiguous());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_scalar_needs_no_shape, Managed, forms) {
    producer p;
    auto& t = p.get<Managed>()->dl_tensor;
    t.ndim = 0;
    t.shape = nullptr;
    t.strides = nullptr;
    managed_dlpack const tensor{p.get<Managed>()};
    BOOST_TEST(tensor.view().shape().empty());
    BOOST_TEST(tensor.view().bytes() == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_empty_tensor_needs_no_memory, Managed, forms) {
    producer p;
    p.shape = {0, 3};
    auto& t = p.get<Managed>()->dl_tensor;
    t.data = nullptr;
    t.byte_offset = 64;  // says nothing without memory
    managed_dlpack const tensor{p.get<Managed>()};
    BOOST_TEST(tensor.view().data() == nullptr);
    BOOST_TEST(tensor.view().bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(the_snapshot_of_the_layout_is_ours) {
    producer p;
    managed_dlpack const tensor{&p.versioned};
    p.shape.assign(2, 1'000'000);
    p.versioned.dl_tensor.ndim = 8;
    BOOST_TEST(tensor.view().shape() == (extents{2, 3}));
}

BOOST_AUTO_TEST_CASE(a_read_only_tensor_is_never_written) {
    producer p;
    p.versioned.flags = dlpack::flag_read_only;
    managed_dlpack tensor{&p.versioned};
    BOOST_TEST(tensor.read_only());
    test::check_tensor_laws(tensor);
    BOOST_CHECK_EXCEPTION(writable_view_of(tensor), bad_argument, says("read-only"));
    BOOST_CHECK_THROW(tensor.writable_view(), bad_argument);
    managed_dlpack moved{std::move(tensor)};
    BOOST_CHECK_THROW(moved.writable_view(), bad_argument);
    BOOST_TEST(!tensor.read_only());
}

BOOST_AUTO_TEST_CASE(a_copy_made_by_the_producer_may_be_written) {
    producer p;
    p.versioned.flags = dlpack::flag_is_copied;
    managed_dlpack tensor{&p.versioned};
    BOOST_TEST(tensor.writable_view().data() == p.memory.data());
}

BOOST_AUTO_TEST_CASE(other_major_versions_are_refused_without_a_look_behind_the_flags) {
    for (std::uint32_t const major : {0U, 2U, 0xFFFFFFFFU}) {
        producer p;
        p.versioned.version = {major, 7};
        p.versioned.dl_tensor.shape = reinterpret_cast<std::int64_t*>(8);  // a look would crash
        p.versioned.dl_tensor.ndim = 2;
        BOOST_CHECK_EXCEPTION(managed_dlpack{&p.versioned}, bad_input,
                              says({"major version 1", std::to_string(major) + ".7"}));
        BOOST_TEST(p.deleted == 1);
    }
    producer newer;
    newer.versioned.version = {1, 99};  // minor versions only add values
    BOOST_CHECK_NO_THROW(managed_dlpack{&newer.versioned});
}

BOOST_AUTO_TEST_CASE(padded_sub_byte_elements_are_refused) {
    producer p;
    p.versioned.flags = dlpack::flag_subbyte_padded;
    BOOST_CHECK_EXCEPTION(managed_dlpack{&p.versioned}, bad_input, says("padded sub-byte"));
    BOOST_TEST(p.deleted == 1);
}

BOOST_AUTO_TEST_CASE(layouts_that_are_none_are_refused_and_the_tensor_is_dropped) {
    using tensor = dlpack::tensor;
    static std::array<std::int64_t, 9> nine{1, 1, 1, 1, 1, 1, 1, 1, 1};
    static std::array<std::int64_t, 2> negative{-2, 3};
    static std::array<std::int64_t, 2> huge{std::numeric_limits<std::int64_t>::max(), 2};
    check_refused<bad_input>([](tensor& t) { t.ndim = -1; }, says("-1 dimensions"));
    check_refused<bad_input>(
        [](tensor& t) {
            t.ndim = 9;
            t.shape = nine.data();
            t.strides = nine.data();
        },
        says("8 dimensions"));
    check_refused<bad_input>(
        [](tensor& t) {
            t.ndim = 9;
            t.shape = nine.data();
            t.strides = nullptr;
        },
        says("8 dimensions"));
    check_refused<bad_input>([](tensor& t) { t.shape = nullptr; }, says("no shape"));
    check_refused<bad_input>([](tensor& t) { t.data = nullptr; }, says({"[2, 3]", "no memory"}));
    check_refused<bad_input>([](tensor& t) { t.shape = negative.data(); }, says("negative extent"));
    check_refused<bad_input>(
        [](tensor& t) {
            t.shape = negative.data();
            t.strides = nullptr;
        },
        says("negative extent"));
    check_refused<bad_input>([](tensor& t) { t.strides = negative.data(); },
                             says("negative stride"));
    check_refused<bad_input>(
        [](tensor& t) {
            t.shape = huge.data();
            t.strides = nullptr;
        },
        says("63 bits"));
    check_refused<bad_input>([](tensor& t) { t.strides = huge.data(); }, says("64 bits"));
    check_refused<bad_input>(
        [](tensor& t) { t.byte_offset = std::numeric_limits<std::uint64_t>::max(); },
        says("64 bits"));
}

BOOST_AUTO_TEST_CASE(devices_map_or_are_refused_by_name) {
    auto const place = [](device_type type, std::int32_t id) {
        producer p;
        p.versioned.dl_tensor.device = {type, id};
        return managed_dlpack{&p.versioned}.view().where();
    };
    BOOST_TEST(place(device_type::cpu, 0) == cpu_device);
    BOOST_TEST(place(device_type::cuda_host, 0) == cpu_device);
    BOOST_TEST(place(device_type::cuda, 3) == (device{device_kind::cuda, 3}));
    BOOST_CHECK_EXCEPTION(place(device_type::cuda, -1), bad_input, says("index -1"));
    BOOST_CHECK_EXCEPTION(place(device_type::rocm, 0), bad_input, says("kDLROCM (10)"));
    BOOST_CHECK_EXCEPTION(place(device_type::cuda_managed, 0), bad_input,
                          says("kDLCUDAManaged (13)"));
    BOOST_CHECK_EXCEPTION(place(device_type::metal, 0), bad_input, says("kDLMetal (8)"));
    BOOST_CHECK_EXCEPTION(place(static_cast<device_type>(77), 0), bad_input,
                          says("unknown device type (77)"));
    BOOST_CHECK_EXCEPTION(place(static_cast<device_type>(0), 0), bad_input, says("(0)"));
}

BOOST_AUTO_TEST_CASE(each_dtype_goes_out_and_comes_back) {
    std::array<std::byte, 64> memory{};
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        managed_dlpack const back{
            to_dlpack(tensor_view<>{memory.data(), type, {2, 3}}, 0).release()};
        BOOST_TEST(back.view().type() == type);
        BOOST_TEST(back.view().bytes() == 6 * item_size(type));
    }
}

BOOST_AUTO_TEST_CASE(dtype_codes_are_those_of_the_standard) {
    auto const type = [](std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
        producer p;
        p.versioned.dl_tensor.dtype = {static_cast<type_code>(code), bits, lanes};
        return managed_dlpack{&p.versioned}.view().type();
    };
    BOOST_TEST(type(0, 64, 1) == dtype::int64);
    BOOST_TEST(type(1, 8, 1) == dtype::uint8);
    BOOST_TEST(type(2, 16, 1) == dtype::float16);
    BOOST_TEST(type(4, 16, 1) == dtype::bfloat16);
    BOOST_TEST(type(5, 64, 1) == dtype::complex64);
    BOOST_TEST(type(6, 8, 1) == dtype::bool_);
    BOOST_TEST(type(10, 8, 1) == dtype::float8_e4m3fn);
    BOOST_TEST(type(12, 8, 1) == dtype::float8_e5m2);
    BOOST_TEST(type(14, 8, 1) == dtype::float8_e8m0fnu);
    BOOST_TEST(type(17, 4, 2) == dtype::float4_e2m1fn_x2);
    BOOST_CHECK_EXCEPTION(type(17, 4, 1), bad_input,
                          says({"float4_e2m1fn of 4 bits in 1 lanes", "4 bits in 2 lanes"}));
    BOOST_CHECK_EXCEPTION(type(17, 8, 1), bad_input, says("float4_e2m1fn of 8 bits"));
    BOOST_CHECK_EXCEPTION(type(2, 32, 4), bad_input, says("float of 32 bits in 4 lanes"));
    BOOST_CHECK_EXCEPTION(type(2, 32, 0), bad_input, says("in 0 lanes"));
    BOOST_CHECK_EXCEPTION(type(2, 128, 1), bad_input, says("float of 128 bits"));
    BOOST_CHECK_EXCEPTION(type(0, 4, 1), bad_input, says("int of 4 bits"));
    BOOST_CHECK_EXCEPTION(type(3, 64, 1), bad_input, says("opaque_handle"));
    BOOST_CHECK_EXCEPTION(type(11, 8, 1), bad_input, says("float8_e4m3fnuz"));
    BOOST_CHECK_EXCEPTION(type(200, 8, 1), bad_input, says("type code 200"));
}

BOOST_AUTO_TEST_CASE(an_export_describes_its_view) {
    std::array<float, 64> memory{};
    auto const out = to_dlpack(tensor_view<>{&memory[1], dtype::float32, {2, 3}, {1, 2}}, 0);
    BOOST_TEST(out->version.major == 1U);
    BOOST_TEST(out->flags == 0U);
    auto const& t = out->dl_tensor;
    BOOST_TEST(t.data == &memory[1]);
    BOOST_TEST(t.byte_offset == 0U);
    BOOST_CHECK(t.device.type == device_type::cpu);
    BOOST_TEST(t.ndim == 2);
    BOOST_TEST(t.shape[1] == 3);
    BOOST_TEST(t.strides[1] == 2);
    BOOST_CHECK((t.dtype == dlpack::data_type{type_code::float_, 32, 1}));
}

BOOST_AUTO_TEST_CASE(an_export_of_const_elements_is_read_only) {
    std::array<float, 4> memory{};
    auto out = to_dlpack(const_tensor_view<>{memory.data(), dtype::float32, {4}}, 0);
    BOOST_TEST(out->flags == dlpack::flag_read_only);
    managed_dlpack back{out.release()};
    BOOST_CHECK_THROW(back.writable_view(), bad_argument);
}

BOOST_AUTO_TEST_CASE(an_export_of_nothing_has_no_memory) {
    std::byte byte{};
    auto const empty = to_dlpack(tensor_view<>{&byte, dtype::float32, {0, 3}}, 0);
    BOOST_TEST(empty->dl_tensor.data == nullptr);
    auto const scalar = to_dlpack(tensor_view<>{&byte, dtype::uint8, {}}, 0);
    BOOST_TEST(scalar->dl_tensor.ndim == 0);
    BOOST_TEST(scalar->dl_tensor.data == &byte);
}

BOOST_AUTO_TEST_CASE(an_export_keeps_its_owner_until_the_consumer_is_done) {
    auto memory = std::make_shared<std::array<float, 6>>();
    std::weak_ptr const watch = memory;
    tensor_view<> const view{memory->data(), dtype::float32, {2, 3}};
    auto out = to_dlpack(view, std::move(memory));
    BOOST_TEST(!watch.expired());
    {
        managed_dlpack const consumer{out.release()};
        BOOST_TEST(!watch.expired());
    }
    BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_CASE(an_export_that_nobody_takes_drops_its_owner) {
    auto memory = std::make_unique<std::array<float, 6>>();
    auto const owner = std::make_shared<int>(1);
    { auto const out = to_dlpack(tensor_view<>{memory->data(), dtype::float32, {6}}, owner); }
    BOOST_TEST(owner.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(devices_that_dlpack_cannot_name_are_not_exported) {
    std::byte byte{};
    auto const owner = std::make_shared<int>(1);
    auto const out = [&](device where) {
        return to_dlpack(tensor_view<dynamic_space>{&byte, dtype::uint8, {1}, where}, owner);
    };
    BOOST_CHECK((out({device_kind::cuda, 2})->dl_tensor.device.id == 2));
    BOOST_CHECK_EXCEPTION(out({device_kind::host, 1}), bad_argument, says("host:1"));
    BOOST_CHECK_EXCEPTION(out({device_kind::cuda, device::unresolved}), bad_argument,
                          says("device cuda;"));
    BOOST_TEST(owner.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
