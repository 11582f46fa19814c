// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C structs of DLPack 1.1, written out: distributions ship older headers that know neither
// versions nor 8-bit floats. The ABI is pinned by the assertions below.

#include <cstddef>
#include <cstdint>

namespace weightcast::dlpack {

inline constexpr std::uint32_t major_version = 1;
inline constexpr std::uint32_t minor_version = 1;

/// DLPackVersion: another major number means another layout behind `flags`.
struct pack_version {
    std::uint32_t major;
    std::uint32_t minor;
};

/// DLDeviceType. Values that are not listed here may come from newer producers.
enum class device_type : std::int32_t {
    cpu = 1,
    cuda = 2,
    cuda_host = 3,
    opencl = 4,
    vulkan = 7,
    metal = 8,
    vpi = 9,
    rocm = 10,
    rocm_host = 11,
    ext_dev = 12,
    cuda_managed = 13,
    oneapi = 14,
    webgpu = 15,
    hexagon = 16,
    maia = 17,
    trainium = 18,
};

/// DLDevice
struct device {
    device_type type;
    std::int32_t id;
};

/// DLDataTypeCode
enum class type_code : std::uint8_t {
    int_ = 0,
    uint = 1,
    float_ = 2,
    opaque_handle = 3,
    bfloat = 4,
    complex = 5,
    bool_ = 6,
    float8_e3m4 = 7,
    float8_e4m3 = 8,
    float8_e4m3b11fnuz = 9,
    float8_e4m3fn = 10,
    float8_e4m3fnuz = 11,
    float8_e5m2 = 12,
    float8_e5m2fnuz = 13,
    float8_e8m0fnu = 14,
    float6_e2m3fn = 15,
    float6_e3m2fn = 16,
    float4_e2m1fn = 17,
};

/// DLDataType: bits of one lane, and lanes of one element.
struct data_type {
    type_code code;
    std::uint8_t bits;
    std::uint16_t lanes;
    friend bool operator==(data_type const&, data_type const&) = default;
};

/// DLTensor: strides count elements; null strides mean contiguous (before 1.2).
struct tensor {
    void* data;
    dlpack::device device;
    std::int32_t ndim;
    data_type dtype;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};

/// DLManagedTensor: the form before 1.0.
struct managed_tensor {
    tensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(managed_tensor* self);
};

/// Bits of `managed_tensor_versioned::flags`.
inline constexpr std::uint64_t flag_read_only = 1U << 0U;
inline constexpr std::uint64_t flag_is_copied = 1U << 1U;
inline constexpr std::uint64_t flag_subbyte_padded = 1U << 2U;

/// DLManagedTensorVersioned: everything up to `flags` is the same in each major version.
struct managed_tensor_versioned {
    pack_version version;
    void* manager_ctx;
    void (*deleter)(managed_tensor_versioned* self);
    std::uint64_t flags;
    tensor dl_tensor;
};

static_assert(sizeof(void*) == 8, "the layout below is that of 64-bit machines");
static_assert(sizeof(pack_version) == 8 && sizeof(device) == 8 && sizeof(data_type) == 4);
static_assert(offsetof(data_type, bits) == 1 && offsetof(data_type, lanes) == 2);
static_assert(sizeof(tensor) == 48 && offsetof(tensor, device) == 8 &&
              offsetof(tensor, ndim) == 16);
static_assert(offsetof(tensor, dtype) == 20 && offsetof(tensor, shape) == 24);
static_assert(offsetof(tensor, strides) == 32 && offsetof(tensor, byte_offset) == 40);
static_assert(sizeof(managed_tensor) == 64 && offsetof(managed_tensor, manager_ctx) == 48);
static_assert(offsetof(managed_tensor, deleter) == 56);
static_assert(sizeof(managed_tensor_versioned) == 80);
static_assert(offsetof(managed_tensor_versioned, manager_ctx) == 8);
static_assert(offsetof(managed_tensor_versioned, deleter) == 16);
static_assert(offsetof(managed_tensor_versioned, flags) == 24);
static_assert(offsetof(managed_tensor_versioned, dl_tensor) == 32);

}  // namespace weightcast::dlpack
