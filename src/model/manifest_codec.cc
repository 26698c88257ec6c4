#include "model/manifest_codec.h"

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "manifest_generated.h"

namespace weft {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

// Upper bounds for the bytes of a table and a string, with its offset in a vector and its padding.
constexpr std::uint64_t kTableBytes = 96;
constexpr std::uint64_t kStringBytes = 12;

std::uint64_t encoded_bytes(const Tensor& tensor) {
  return kTableBytes + 2 * kStringBytes + tensor.name.size() + tensor.descr.size() +
         8 * (tensor.shape.size() + tensor.strides.size() + tensor.grid.size()) + tensor.runs.size() * sizeof(fb::Run);
}

std::uint64_t encoded_bytes(const HiddenTensor& hidden) {
  return kTableBytes + 2 * kStringBytes + hidden.name.size() + hidden.why.size() + 8 * hidden.shape.size();
}

std::uint64_t encoded_bytes(const File& file) {
  std::uint64_t bytes = kTableBytes + sizeof(fb::Digest) + 2 * kStringBytes + file.path.size() + file.format.size();
  bytes += file.extents.size() * sizeof(fb::Extent);
  for (const Tensor& tensor : file.tensors) bytes += encoded_bytes(tensor);
  for (const auto& [key, value] : file.metadata) bytes += kTableBytes + 2 * kStringBytes + key.size() + value.size();
  for (const HiddenTensor& hidden : file.hidden) bytes += encoded_bytes(hidden);
  return bytes;
}

std::uint64_t encoded_bytes(const ArchLayer& layer) {
  std::uint64_t bytes =
      kTableBytes + 6 * kStringBytes + layer.kind.size() + layer.name.size() + 4 * layer.inputs.size();
  for (const auto& [key, value] : layer.params) bytes += kTableBytes + 2 * kStringBytes + key.size() + value.size();
  for (const auto& [role, position] : layer.tensors) bytes += 2 * kStringBytes + role.size() + sizeof position;
  return bytes;
}

fb::Extent to_fb(const Extent& extent) {
  const ContentId& id = extent.id;
  return {extent.offset, id.length, extent.head, flatbuffers::span<const std::uint8_t, 32>(id.root.bytes)};
}

fb::Digest to_fb(const Digest& digest) {
  return fb::Digest(flatbuffers::span<const std::uint8_t, 32>(digest.bytes));
}

fb::Run to_fb(const TensorRun& run) {
  return {run.file, run.extent, run.offset, run.length};
}

// Writes a manifest into one buffer. The order of calls decides the bytes: it is part of the canonical form.
class Encoder {
 public:
  // A buffer of this size is not copied while it fills. Its unused pages take no memory.
  explicit Encoder(std::uint64_t bytes_max) : builder_(bytes_max) {}

  // The result is valid as long as the encoder.
  std::span<const std::byte> encode(const Manifest& manifest) {
    std::vector<Offset<fb::File>> files;
    files.reserve(manifest.files.size());
    for (const File& file : manifest.files) files.push_back(put(file));
    auto list = vector(files);
    auto architecture = put(manifest.architecture);
    std::vector<Offset<String>> directories;
    for (const std::string& path : manifest.directories) directories.push_back(builder_.CreateString(path));
    fb::FinishManifestBuffer(builder_, fb::CreateManifest(builder_, list, architecture,
                                                          manifest.kind == VersionKind::dataset, vector(directories)));
    return std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  }

 private:
  Offset<fb::File> put(const File& file) {
    std::vector<Offset<fb::Tensor>> tensors;
    tensors.reserve(file.tensors.size());
    for (const Tensor& tensor : file.tensors) tensors.push_back(put(tensor));
    std::vector<Offset<fb::Pair>> metadata = pairs(file.metadata);
    std::vector<Offset<fb::Hidden>> hidden;
    hidden.reserve(file.hidden.size());
    for (const HiddenTensor& tensor : file.hidden) hidden.push_back(put(tensor));
    auto path = builder_.CreateString(file.path);
    auto format = optional_text(file.format);
    auto extents = structs<fb::Extent>(file.extents);
    auto tensor_list = vector(tensors);
    const fb::Digest sha256 = file.sha256 ? to_fb(*file.sha256) : fb::Digest();
    return fb::CreateFile(builder_, path, file.size, format, extents, tensor_list, vector(metadata),
                          static_cast<std::uint8_t>(file.role), file.execute, file.sha256 ? &sha256 : nullptr,
                          vector(hidden), file.hidden_more);
  }

  Offset<fb::Hidden> put(const HiddenTensor& hidden) {
    auto name = builder_.CreateString(hidden.name);
    auto shape = vector(hidden.shape);
    auto why = builder_.CreateString(hidden.why);
    const auto dtype = hidden.dtype ? static_cast<std::uint8_t>(*hidden.dtype) : std::uint8_t{0};
    return fb::CreateHidden(builder_, name, dtype, shape, hidden.bytes, why);
  }

  Offset<fb::Tensor> put(const Tensor& tensor) {
    auto name = builder_.CreateString(tensor.name);
    auto shape = vector(tensor.shape);
    auto descr = optional_text(tensor.descr);
    auto runs = structs<fb::Run>(tensor.runs);
    auto strides = vector(tensor.strides);
    auto grid = vector(tensor.grid);
    return fb::CreateTensor(builder_, name, static_cast<std::uint8_t>(tensor.dtype), tensor.extent, shape, descr, runs,
                            strides, grid);
  }

  Offset<fb::Architecture> put(const Architecture& architecture) {
    if (architecture.layers.empty()) return 0;
    std::vector<Offset<fb::Layer>> layers;
    layers.reserve(architecture.layers.size());
    for (const ArchLayer& layer : architecture.layers) layers.push_back(put(layer));
    auto family = builder_.CreateString(architecture.family);
    return fb::CreateArchitecture(builder_, family, vector(layers));
  }

  Offset<fb::Layer> put(const ArchLayer& layer) {
    std::vector<Offset<String>> roles;
    std::vector<std::uint32_t> tensors;
    for (const auto& [role, position] : layer.tensors) {
      roles.push_back(builder_.CreateString(role));
      tensors.push_back(position);
    }
    auto kind = builder_.CreateString(layer.kind);
    auto name = optional_text(layer.name);
    auto params = vector(pairs(layer.params));
    auto role_list = vector(roles);
    auto tensor_list = vector(tensors);
    return fb::CreateLayer(builder_, kind, name, params, role_list, tensor_list, vector(layer.inputs), layer.summed);
  }

  std::vector<Offset<fb::Pair>> pairs(const std::vector<std::pair<std::string, std::string>>& texts) {
    std::vector<Offset<fb::Pair>> list;
    for (const auto& [key, value] : texts) {
      auto key_text = builder_.CreateString(key);
      list.push_back(fb::CreatePair(builder_, key_text, builder_.CreateString(value)));
    }
    return list;
  }

  // The digest of its encoding names a manifest, and versions of FlatBuffers place a vector of structs at different
  // offsets. All of them place a vector of numbers at the same offset. The numbers of the structs are therefore made as
  // such a vector, whose length is then set to the number of the structs.
  template <class Struct, class Item>
  Offset<Vector<const Struct*>> structs(const std::vector<Item>& items) {
    using Number = std::uint64_t;
    static_assert(alignof(Struct) == alignof(Number) && sizeof(Struct) % sizeof(Number) == 0);
    if (items.empty()) return 0;
    Number* out = nullptr;
    const auto list = builder_.CreateUninitializedVector(items.size() * (sizeof(Struct) / sizeof(Number)), &out);
    flatbuffers::WriteScalar(reinterpret_cast<flatbuffers::uoffset_t*>(out) - 1,
                             static_cast<flatbuffers::uoffset_t>(items.size()));
    std::transform(items.begin(), items.end(), reinterpret_cast<Struct*>(out),
                   [](const Item& item) { return to_fb(item); });
    return list.o;
  }

  template <class T>
  Offset<Vector<T>> vector(const std::vector<T>& items) {
    return items.empty() ? Offset<Vector<T>>(0) : builder_.CreateVector(items);
  }
  Offset<String> optional_text(const std::string& text) { return text.empty() ? 0 : builder_.CreateString(text); }

  FlatBufferBuilder builder_;
};

// Copies a verified buffer out. A small hostile buffer may refer to one string or vector many times and decode to much
// memory. So each copied byte is deducted from the buffer's size. Buffers of Encoder share nothing and pass.
class Decoder {
 public:
  explicit Decoder(std::uint64_t bytes) : budget_(bytes) {}
  const char* fault() const { return fault_; }  // nullptr: none

  Manifest manifest(const fb::Manifest& from) {
    Manifest manifest;
    copy_list(from.files(), manifest.files, [this](const fb::File* file) { return this->file(*file); });
    if (from.architecture() != nullptr) manifest.architecture = architecture(*from.architecture());
    if (from.dataset()) manifest.kind = VersionKind::dataset;
    copy_list(from.directories(), manifest.directories, [this](const String* path) { return text(path); });
    return manifest;
  }

 private:
  void fail(const char* fault) { fault_ = fault; }

  bool spend(std::uint64_t bytes) {
    if (bytes > budget_) fail("says more than it holds");
    if (fault_ != nullptr) return false;
    budget_ -= bytes;
    return true;
  }

  // The verifier has checked the alignment of a vector's length, but not of wider items.
  template <class T, class Out, class Convert>
  void copy_list(const Vector<T>* from, std::vector<Out>& to, Convert convert) {
    constexpr std::uint64_t kItemBytes = flatbuffers::IndirectHelper<T>::element_stride;
    constexpr std::uintptr_t kAlign = kItemBytes % 8 == 0 ? 8 : 4;
    if (from == nullptr || from->size() == 0) return;
    if (reinterpret_cast<std::uintptr_t>(from->Data()) % kAlign != 0) return fail("has numbers out of alignment");
    if (!spend(from->size() * kItemBytes)) return;
    to.reserve(from->size());
    for (auto item : *from) {
      if (fault_ != nullptr) return;
      to.push_back(convert(item));
    }
  }

  std::string text(const String* from) {
    if (from == nullptr || !spend(from->size())) return {};
    return from->str();
  }

  File file(const fb::File& from) {
    File file;
    file.path = text(from.path());
    file.size = from.size();
    file.format = text(from.format());
    copy_list(from.extents(), file.extents, [](const fb::Extent* extent) { return copy(*extent); });
    copy_list(from.tensors(), file.tensors, [this](const fb::Tensor* tensor) { return this->tensor(*tensor); });
    copy_pairs(from.metadata(), file.metadata);
    file.role = static_cast<FileRole>(from.role());
    file.execute = from.execute();
    if (from.sha256() != nullptr) file.sha256 = copy(*from.sha256()->bytes());
    copy_list(from.hidden(), file.hidden, [this](const fb::Hidden* hidden) { return this->hidden(*hidden); });
    file.hidden_more = from.hidden_more();
    return file;
  }

  HiddenTensor hidden(const fb::Hidden& from) {
    HiddenTensor hidden;
    hidden.name = text(from.name());
    hidden.bytes = from.bytes();
    hidden.why = text(from.why());
    if (from.dtype() != 0) hidden.dtype = static_cast<DType>(from.dtype());
    copy_list(from.shape(), hidden.shape, [](std::uint64_t dimension) { return dimension; });
    return hidden;
  }

  void copy_pairs(const Vector<Offset<fb::Pair>>* from, std::vector<std::pair<std::string, std::string>>& to) {
    copy_list(from, to, [this](const fb::Pair* pair) { return std::pair(text(pair->key()), text(pair->value())); });
  }

  Architecture architecture(const fb::Architecture& from) {
    Architecture architecture;
    architecture.family = text(from.family());
    copy_list(from.layers(), architecture.layers, [this](const fb::Layer* layer) { return this->layer(*layer); });
    if (architecture.layers.empty()) fail("has an architecture without layers");
    return architecture;
  }

  ArchLayer layer(const fb::Layer& from) {
    ArchLayer layer;
    layer.kind = text(from.kind());
    layer.name = text(from.name());
    copy_pairs(from.params(), layer.params);
    std::vector<std::uint32_t> positions;
    copy_list(from.tensors(), positions, [](std::uint32_t position) { return position; });
    copy_list(from.roles(), layer.tensors,
              [this](const String* role) { return std::pair(text(role), std::uint32_t{0}); });
    if (layer.tensors.size() != positions.size()) fail("has a layer with other tensors than roles");
    for (std::size_t i = 0; i < std::min(positions.size(), layer.tensors.size()); ++i)
      layer.tensors[i].second = positions[i];
    copy_list(from.inputs(), layer.inputs, [](std::uint32_t input) { return input; });
    layer.summed = from.summed();
    return layer;
  }

  Tensor tensor(const fb::Tensor& from) {
    Tensor tensor;
    tensor.name = text(from.name());
    tensor.dtype = static_cast<DType>(from.dtype());
    tensor.extent = from.extent();
    copy_list(from.shape(), tensor.shape, [](std::uint64_t dimension) { return dimension; });
    tensor.descr = text(from.descr());
    copy_list(from.runs(), tensor.runs, [](const fb::Run* run) {
      return TensorRun{run->file(), run->extent(), run->offset(), run->length()};
    });
    copy_list(from.strides(), tensor.strides, [](std::uint64_t stride) { return stride; });
    copy_list(from.grid(), tensor.grid, [](std::uint64_t border) { return border; });
    return tensor;
  }

  static Extent copy(const fb::Extent& from) {
    return {from.offset(), {from.length(), copy(*from.root())}, from.head()};
  }

  static Digest copy(const flatbuffers::Array<std::uint8_t, 32>& from) {
    Digest digest;
    std::memcpy(digest.bytes.data(), from.Data(), digest.bytes.size());
    return digest;
  }

  std::uint64_t budget_;
  const char* fault_ = nullptr;
};

// A table takes at least 8 bytes: the offset that refers to it, and the offset of its vtable.
bool verify(std::span<const std::uint8_t> bytes) {
  constexpr flatbuffers::uoffset_t kDepthMax = 8;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kDepthMax,
                                 static_cast<flatbuffers::uoffset_t>(bytes.size() / 8));
  return fb::VerifyManifestBuffer(verifier);
}

Result<Manifest> decode_aligned(std::span<const std::byte> bytes) {
  std::span data(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (!verify(data)) return Error{Errc::corrupt, fmt::format("manifest of {} bytes: does not verify", bytes.size())};
  Decoder decoder(bytes.size());
  Manifest manifest = decoder.manifest(*fb::GetManifest(data.data()));
  if (decoder.fault() != nullptr)
    return Error{Errc::corrupt, fmt::format("manifest of {} bytes: {}", bytes.size(), decoder.fault())};
  return manifest;
}

}  // namespace

Status encode_unchecked(const Manifest& manifest, const std::function<Status(std::span<const std::byte>)>& use,
                        std::uint64_t bytes_max) {
  std::uint64_t bytes = kTableBytes;
  for (const File& file : manifest.files) bytes += encoded_bytes(file);
  bytes += kTableBytes + kStringBytes + manifest.architecture.family.size();
  for (const std::string& path : manifest.directories) bytes += 2 * kStringBytes + path.size();
  for (const ArchLayer& layer : manifest.architecture.layers) bytes += encoded_bytes(layer);
  if (bytes > bytes_max)
    return Error{Errc::invalid,
                 fmt::format("expected names, tensors and metadata of a version to take at most {} bytes, got up to {}",
                             bytes_max, bytes)};
  Encoder encoder(bytes);
  return use(encoder.encode(manifest));
}

Result<std::vector<std::byte>> encode_unchecked(const Manifest& manifest, std::uint64_t bytes_max) {
  std::vector<std::byte> encoded;
  const auto copy = [&encoded](std::span<const std::byte> bytes) -> Status {
    encoded.assign(bytes.begin(), bytes.end());
    return {};
  };
  WEFT_CHECK(encode_unchecked(manifest, copy, bytes_max));
  return encoded;
}

Result<Manifest> decode_unchecked(std::span<const std::byte> bytes) {
  if (bytes.size() > limits::kManifestMax)
    return Error{Errc::corrupt,
                 fmt::format("manifest: expected at most {} bytes, got {}", limits::kManifestMax, bytes.size())};
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0) return decode_aligned(bytes);
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  return decode_aligned(std::as_bytes(std::span(aligned)).first(bytes.size()));
}

}  // namespace weft
