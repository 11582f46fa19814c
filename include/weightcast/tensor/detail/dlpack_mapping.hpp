// SPDX-License-Identifier: Apache-2.0
#pragma once
// What DLPack's codes mean here, in both directions; whatever has no counterpart is refused by
// name.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/dlpack_abi.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::detail {

/// Row i belongs to the dtype of value i.
inline constexpr std::array<dlpack::data_type, dtype_count> dlpack_types{{
    {dlpack::type_code::bool_, 8, 1},
    {dlpack::type_code::int_, 8, 1},
    {dlpack::type_code::uint, 8, 1},
    {dlpack::type_code::int_, 16, 1},
    {dlpack::type_code::uint, 16, 1},
    {dlpack::type_code::int_, 32, 1},
    {dlpack::type_code::uint, 32, 1},
    {dlpack::type_code::int_, 64, 1},
    {dlpack::type_code::uint, 64, 1},
    {dlpack::type_code::float_, 16, 1},
    {dlpack::type_code::bfloat, 16, 1},
    {dlpack::type_code::float_, 32, 1},
    {dlpack::type_code::float_, 64, 1},
    {dlpack::type_code::float8_e4m3fn, 8, 1},
    {dlpack::type_code::float8_e5m2, 8, 1},
    {dlpack::type_code::float8_e8m0fnu, 8, 1},
    {dlpack::type_code::float4_e2m1fn, 4, 2},
    {dlpack::type_code::complex, 64, 1},
}};

inline constexpr std::array<std::string_view, 18> dlpack_code_names{
    "int",
    "uint",
    "float",
    "opaque_handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};

constexpr dlpack::data_type to_dlpack_type(dtype type) noexcept {
    return dlpack_types[static_cast<std::size_t>(type)];
}

/// @throws bad_input  for a type that weightcast does not have, with code, bits and lanes
inline dtype from_dlpack_type(dlpack::data_type type) {
    for (std::size_t i = 0; i < dlpack_types.size(); ++i) {
        if (dlpack_types[i] == type) return static_cast<dtype>(i);
    }
    auto const code = static_cast<std::size_t>(type.code);
    std::string const name = code < dlpack_code_names.size() ? std::string{dlpack_code_names[code]}
                                                             : "type code " + std::to_string(code);
    std::string message = "DLPack: no dtype for " + name + " of " + std::to_string(type.bits) +
                          " bits in " + std::to_string(type.lanes) + " lanes";
    if (type.code == dlpack::type_code::float4_e2m1fn) message += "; expected 4 bits in 2 lanes";
    throw bad_input{message};
}

constexpr std::string_view dlpack_device_name(dlpack::device_type type) noexcept {
    struct named {
        dlpack::device_type type;
        char const* name;
    };
    constexpr std::array<named, 16> names{{
        {dlpack::device_type::cpu, "kDLCPU"},
        {dlpack::device_type::cuda, "kDLCUDA"},
        {dlpack::device_type::cuda_host, "kDLCUDAHost"},
        {dlpack::device_type::opencl, "kDLOpenCL"},
        {dlpack::device_type::vulkan, "kDLVulkan"},
        {dlpack::device_type::metal, "kDLMetal"},
        {dlpack::device_type::vpi, "kDLVPI"},
        {dlpack::device_type::rocm, "kDLROCM"},
        {dlpack::device_type::rocm_host, "kDLROCMHost"},
        {dlpack::device_type::ext_dev, "kDLExtDev"},
        {dlpack::device_type::cuda_managed, "kDLCUDAManaged"},
        {dlpack::device_type::oneapi, "kDLOneAPI"},
        {dlpack::device_type::webgpu, "kDLWebGPU"},
        {dlpack::device_type::hexagon, "kDLHexagon"},
        {dlpack::device_type::maia, "kDLMAIA"},
        {dlpack::device_type::trainium, "kDLTrn"},
    }};
    for (auto const& known : names) {
        if (known.type == type) return known.name;
    }
    return "an unknown device type";
}

/// @throws bad_input  for devices other than kDLCPU, kDLCUDA and kDLCUDAHost
inline device from_dlpack_device(dlpack::device where) {
    switch (where.type) {
        case dlpack::device_type::cpu:
        case dlpack::device_type::cuda_host: return cpu_device;  // pinned memory is ordinary memory
        case dlpack::device_type::cuda:
            if (where.id < 0) {
                throw bad_input{"DLPack: a CUDA device has index " + std::to_string(where.id)};
            }
            return {device_kind::cuda, where.id};
        default: break;
    }
    throw bad_input{"DLPack: device " + std::string{dlpack_device_name(where.type)} + " (" +
                    std::to_string(static_cast<std::int32_t>(where.type)) +
                    ") is not supported; expected kDLCPU, kDLCUDA or kDLCUDAHost"};
}

/// @throws bad_argument  for `host:i` and devices without an index: DLPack cannot name them
inline dlpack::device to_dlpack_device(device where) {
    if (where.kind == device_kind::cpu) return {dlpack::device_type::cpu, 0};
    if (where.kind == device_kind::cuda && where.is_resolved()) {
        return {dlpack::device_type::cuda, where.index};
    }
    throw bad_argument{"DLPack cannot name the device " + to_string(where) +
                       "; expected cpu or cuda:N"};
}

/// @throws bad_input  for a rank, a pointer or an offset that no tensor has
inline extents from_dlpack_extents(std::int64_t const* values, std::int32_t ndim) {
    extents result;
    for (std::int32_t i = 0; i < ndim; ++i) result.push_back(values[i]);
    return result;
}

/// @throws bad_input  for a tensor that weightcast cannot hold
inline tensor_view<dynamic_space> view_of_dlpack(dlpack::tensor const& t) {
    if (t.ndim < 0)
        throw bad_input{"DLPack: a tensor has " + std::to_string(t.ndim) + " dimensions"};
    if (t.ndim > 0 && t.shape == nullptr) throw bad_input{"DLPack: a tensor has no shape"};
    dtype const type = from_dlpack_type(t.dtype);
    device const where = from_dlpack_device(t.device);
    extents const shape = from_dlpack_extents(t.shape, t.ndim);
    extents const strides =
        t.strides == nullptr ? contiguous_strides(shape) : from_dlpack_extents(t.strides, t.ndim);
    if (t.data == nullptr) {
        if (element_count(shape) != 0)
            throw bad_input{"DLPack: a tensor of shape " + to_string(shape) + " has no memory"};
        return {nullptr, type, shape, strides, where};
    }
    auto const address = reinterpret_cast<std::uintptr_t>(t.data);
    static_cast<void>(checked_add(address, t.byte_offset));
    return {static_cast<std::byte*>(t.data) + t.byte_offset, type, shape, strides, where};
}

}  // namespace weightcast::detail
