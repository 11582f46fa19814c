// SPDX-License-Identifier: Apache-2.0
// Compiled only: the smallest models of tensor/'s concepts, and near-misses that lack one atom
// each.

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/dlpack.hpp>
#include <weightcast/tensor/named_view.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace {

using namespace weightcast;

// All parts of a reading tensor's traits; the near-misses below each hide one of them.
struct good_parts {
    using space = host_space;
    template <class T>
    static void const* data(T const&);
    template <class T>
    static dtype element_type(T const&);
    template <class T>
    static device where(T const&);
    template <class T>
    static std::array<std::int64_t, 2> shape(T const&);
};

// The archetype can neither be made, copied nor moved: the concept asks for nothing but its traits.
struct archetype {
    archetype() = delete;
    archetype(archetype&&) = delete;
};
struct writable_archetype {
    writable_archetype(writable_archetype&&) = delete;
};
struct strided_archetype {};

struct without_traits {};
struct without_space {};
struct unknown_space {};
struct without_data {};
struct number_as_data {};
struct without_type {};
struct number_as_type {};
struct without_device {};
struct index_as_device {};
struct without_shape {};
struct shape_of_unknown_size {};
struct shape_of_texts {};
struct strides_of_texts {};
struct mutable_data_is_const {};
struct mutable_data_of_bytes {};

}  // namespace

namespace weightcast {

template <>
struct tensor_traits<archetype> : good_parts {};
template <>
struct tensor_traits<writable_archetype> : good_parts {
    static void* mutable_data(writable_archetype&);
};
template <>
struct tensor_traits<strided_archetype> : good_parts {
    static std::vector<int> strides(strided_archetype const&);
};
template <>
struct tensor_traits<without_space> : private good_parts {
    using good_parts::data, good_parts::element_type, good_parts::where, good_parts::shape;
};
template <>
struct tensor_traits<unknown_space> : good_parts {
    struct space {};
};
template <>
struct tensor_traits<without_data> : private good_parts {
    using good_parts::space, good_parts::element_type, good_parts::where, good_parts::shape;
};
template <>
struct tensor_traits<number_as_data> : good_parts {
    static std::uintptr_t data(number_as_data const&);
};
template <>
struct tensor_traits<without_type> : private good_parts {
    using good_parts::space, good_parts::data, good_parts::where, good_parts::shape;
};
template <>
struct tensor_traits<number_as_type> : good_parts {
    static int element_type(number_as_type const&);
};
template <>
struct tensor_traits<without_device> : private good_parts {
    using good_parts::space, good_parts::data, good_parts::element_type, good_parts::shape;
};
template <>
struct tensor_traits<index_as_device> : good_parts {
    static int where(index_as_device const&);
};
template <>
struct tensor_traits<without_shape> : private good_parts {
    using good_parts::space, good_parts::data, good_parts::element_type, good_parts::where;
};
template <>
struct tensor_traits<shape_of_unknown_size> : good_parts {
    static std::int64_t const* shape(shape_of_unknown_size const&);
};
template <>
struct tensor_traits<shape_of_texts> : good_parts {
    static std::vector<std::string> shape(shape_of_texts const&);
};
template <>
struct tensor_traits<strides_of_texts> : good_parts {
    static std::vector<std::string> strides(strides_of_texts const&);
};
template <>
struct tensor_traits<mutable_data_is_const> : good_parts {
    static void const* mutable_data(mutable_data_is_const&);
};
template <>
struct tensor_traits<mutable_data_of_bytes> : good_parts {
    static std::byte* mutable_data(mutable_data_of_bytes&);
};

}  // namespace weightcast

namespace {

static_assert(DeviceTensor<archetype>);
static_assert(DeviceTensor<archetype const&>);
static_assert(explain_device_tensor<archetype>());
static_assert(!WritableDeviceTensor<archetype>);
static_assert(!has_tensor_strides<archetype>);

static_assert(WritableDeviceTensor<writable_archetype>);
static_assert(explain_writable_device_tensor<writable_archetype>());
static_assert(WritableDeviceTensor<writable_archetype&>);
// What is const may be read only.
static_assert(DeviceTensor<writable_archetype const>);
static_assert(!WritableDeviceTensor<writable_archetype const>);
static_assert(!WritableDeviceTensor<writable_archetype const&>);

static_assert(DeviceTensor<strided_archetype>);
static_assert(has_tensor_strides<strided_archetype>);

// Each near-miss lacks its own atom and no other.
static_assert(!DeviceTensor<without_traits>);
static_assert(!has_tensor_space<without_space> && has_tensor_data<without_space>);
static_assert(!has_tensor_space<unknown_space> && has_tensor_data<unknown_space>);
static_assert(!has_tensor_data<without_data> && has_tensor_space<without_data>);
static_assert(!has_tensor_data<number_as_data> && has_tensor_shape<number_as_data>);
static_assert(!has_tensor_element_type<without_type> && has_tensor_shape<without_type>);
static_assert(!has_tensor_element_type<number_as_type> && has_tensor_shape<number_as_type>);
static_assert(!has_tensor_device<without_device> && has_tensor_shape<without_device>);
static_assert(!has_tensor_device<index_as_device> && has_tensor_shape<index_as_device>);
static_assert(!has_tensor_shape<without_shape> && has_tensor_data<without_shape>);
static_assert(!has_tensor_shape<shape_of_unknown_size> && has_tensor_data<shape_of_unknown_size>);
static_assert(!has_tensor_shape<shape_of_texts> && has_tensor_data<shape_of_texts>);
static_assert(!DeviceTensor<without_space> && !DeviceTensor<unknown_space>);
static_assert(!DeviceTensor<without_data> && !DeviceTensor<number_as_data>);
static_assert(!DeviceTensor<without_type> && !DeviceTensor<number_as_type>);
static_assert(!DeviceTensor<without_device> && !DeviceTensor<index_as_device>);
static_assert(!DeviceTensor<without_shape> && !DeviceTensor<shape_of_unknown_size>);
static_assert(!DeviceTensor<shape_of_texts>);
static_assert(DeviceTensor<strides_of_texts> && !has_tensor_strides<strides_of_texts>);
static_assert(DeviceTensor<mutable_data_is_const> && !WritableDeviceTensor<mutable_data_is_const>);
static_assert(!WritableDeviceTensor<mutable_data_of_bytes>);

// The named models and near-misses.
static_assert(explain_writable_device_tensor<tensor_view<host_space>>());
static_assert(explain_writable_device_tensor<tensor_view<cuda_space>>());
static_assert(explain_device_tensor<const_tensor_view<dynamic_space>>());
static_assert(!WritableDeviceTensor<const_tensor_view<host_space>>);
static_assert(explain_writable_device_tensor<managed_dlpack>());
static_assert(explain_writable_device_tensor<std::vector<float>>());
static_assert(!DeviceTensor<std::list<float>>);
static_assert(!DeviceTensor<int>);

static_assert(MemorySpace<host_space> && MemorySpace<cuda_space> && MemorySpace<dynamic_space>);
static_assert(!MemorySpace<int> && !MemorySpace<host_space const>);

static_assert(ExtentsRange<extents> && ExtentsRange<std::vector<std::uint32_t>>);
static_assert(!ExtentsRange<std::vector<std::string>> && !ExtentsRange<std::int64_t*>);

static_assert(std::same_as<space_of<archetype const&>, host_space>);
static_assert(std::same_as<space_of<managed_dlpack>, dynamic_space>);

struct named_archetype {
    std::string name;
    archetype& tensor;
};
struct tensor_without_name {
    archetype& tensor;
};
struct name_without_tensor {
    std::string name;
};
struct number_as_name {
    int name;
    archetype& tensor;
};
static_assert(NamedTensor<named_archetype> && NamedHostTensor<named_archetype>);
static_assert(NamedTensor<named_view<cuda_space>> && !NamedHostTensor<named_view<cuda_space>>);
static_assert(NamedHostTensor<named_view<host_space>>);
static_assert(!NamedTensor<tensor_without_name>);
static_assert(!NamedTensor<name_without_tensor>);
static_assert(!NamedTensor<number_as_name>);
static_assert(!NamedTensor<std::pair<std::string, tensor_view<>>>);

}  // namespace
