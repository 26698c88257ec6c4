// ONNX: a ModelProto. Its tensors are the initializers of its graphs and the constants in attributes of nodes, in the
// file itself or in files beside it (external data). Specification: onnx/onnx.proto. No file is refused: newer versions
// of ONNX may read what weft does not.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "base/limits.h"
#include "format/builtin.h"
#include "format/layout.h"
#include "format/onnx/onnx_tensor.h"
#include "format/parse_errors.h"
#include "format/protobuf.h"

namespace weft {
namespace {

// Field numbers, by message.
namespace onnx_model {
constexpr std::uint32_t kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kMetadata = 14, kTraining = 20,
                        kFunctions = 25;
}
namespace onnx_graph {
constexpr std::uint32_t kNodes = 1, kInitializers = 5, kSparse = 15;
}
namespace onnx_node {
constexpr std::uint32_t kOutputs = 2, kName = 3, kAttributes = 5;
}
namespace onnx_attribute {
constexpr std::uint32_t kName = 1, kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparse = 22, kSparses = 23;
constexpr std::array<std::uint32_t, 6> kWithTensors = {kTensor, kGraph, kTensors, kGraphs, kSparse, kSparses};
}  // namespace onnx_attribute
namespace onnx_function {
constexpr std::uint32_t kName = 1, kNodes = 7, kDefaults = 11;
}
namespace onnx_training {
constexpr std::uint32_t kInitialization = 1, kAlgorithm = 2;
}
namespace onnx_sparse {
constexpr std::uint32_t kValues = 1, kIndices = 2;
}

// Reads one model once.
class OnnxModel {
 public:
  explicit OnnxModel(FormatInput& files) : file_(files.main()), tensors_(files, layout_) {}

  Result<Layout> read();

 private:
  Status read_model_field(const ProtobufField& field);
  Status read_metadata(const ProtobufField& field);
  Status read_graph(Range graph);
  Status read_node(Range node, std::uint64_t number);
  Status read_attribute(Range attribute);
  Status read_attribute_value(const ProtobufField& field);
  Status read_function(Range function);
  Status read_training(Range training);
  Status read_sparse(Range sparse, bool own_name);
  Status add_initializer(Range tensor);

  // Appends a key to the name of all that `inside` reads. No tensor has a name as long as the bound, so the end of a
  // longer name makes no difference.
  Status below(std::string_view key, const std::function<Status()>& inside);
  Result<std::string> name_in(const ProtobufField& field) { return file_.text(field, limits::kTensorNameMax + 1); }

  ProtobufReader file_;
  Layout layout_;
  OnnxTensors tensors_;
  std::string name_;  // of what is read
  std::uint64_t graphs_ = 0;
};

Result<Layout> OnnxModel::read() {
  layout_.format = "onnx";
  WEFT_CHECK(file_.each_field(file_.whole(), [&](const ProtobufField& field) { return read_model_field(field); }));
  if (graphs_ != 1) return Error{Errc::unsupported, fmt::format("expected one graph in the model, got {}", graphs_)};
  tensors_.finish();
  return std::move(layout_);
}

Status OnnxModel::read_model_field(const ProtobufField& field) {
  if (field.is_varint(onnx_model::kIrVersion)) keep_metadata(layout_, "ir_version", fmt::format("{}", field.value));
  if (field.kind != ProtobufField::Kind::bytes) return {};
  switch (field.number) {
    case onnx_model::kProducer:
    case onnx_model::kProducerVersion:
    case onnx_model::kMetadata:
      return read_metadata(field);
    case onnx_model::kGraph:
      ++graphs_;
      return read_graph(field.bytes);
    case onnx_model::kTraining:
      return below("training_info", [&] { return read_training(field.bytes); });
    case onnx_model::kFunctions:
      return read_function(field.bytes);
    default:
      return {};
  }
}

Status OnnxModel::read_metadata(const ProtobufField& field) {
  std::string key = field.number == onnx_model::kProducer ? "producer_name" : "producer_version", value;
  if (field.number != onnx_model::kMetadata) {
    WEFT_TRY(value, file_.text(field, limits::kMetadataTextMax + 1));
  } else {
    WEFT_CHECK(file_.each_field(field.bytes, [&](const ProtobufField& entry) -> Status {
      if (!entry.is_bytes(1) && !entry.is_bytes(2)) return {};
      std::string& text = entry.number == 1 ? key : value;
      WEFT_TRY(text, file_.text(entry, limits::kMetadataTextMax + 1));
      return {};
    }));
  }
  keep_metadata(layout_, key, value);
  return {};
}

Status OnnxModel::read_graph(Range graph) {
  std::uint64_t nodes = 0;
  return file_.each_field(graph, [&](const ProtobufField& field) -> Status {
    if (field.is_bytes(onnx_graph::kNodes)) return read_node(field.bytes, ++nodes);
    if (field.is_bytes(onnx_graph::kInitializers)) return add_initializer(field.bytes);
    if (field.is_bytes(onnx_graph::kSparse)) return read_sparse(field.bytes, true);
    return {};
  });
}

// The name of a node may stand after its attributes, so they are read in a second pass.
Status OnnxModel::read_node(Range node, std::uint64_t number) {
  std::string name, output;
  bool has_attributes = false;
  WEFT_CHECK(file_.each_field(node, [&](const ProtobufField& field) -> Status {
    has_attributes |= field.is_bytes(onnx_node::kAttributes);
    if (field.is_bytes(onnx_node::kName)) {
      WEFT_TRY(name, name_in(field));
    } else if (field.is_bytes(onnx_node::kOutputs) && output.empty()) {
      WEFT_TRY(output, name_in(field));
    }
    return {};
  }));
  if (!has_attributes) return {};
  if (name.empty()) name = output.empty() ? fmt::format("{}", number) : std::move(output);
  return below(name, [&] {
    return file_.each_field(node, [&](const ProtobufField& field) {
      return field.is_bytes(onnx_node::kAttributes) ? read_attribute(field.bytes) : Status{};
    });
  });
}

Status OnnxModel::read_attribute(Range attribute) {
  std::string name;
  bool has_tensors = false;
  WEFT_CHECK(file_.each_field(attribute, [&](const ProtobufField& field) -> Status {
    has_tensors |=
        std::ranges::any_of(onnx_attribute::kWithTensors, [&](auto number) { return field.is_bytes(number); });
    if (field.is_bytes(onnx_attribute::kName)) {
      WEFT_TRY(name, name_in(field));
    }
    return {};
  }));
  if (!has_tensors) return {};
  return below(name, [&] {
    return file_.each_field(attribute, [&](const ProtobufField& field) { return read_attribute_value(field); });
  });
}

Status OnnxModel::read_attribute_value(const ProtobufField& field) {
  if (field.kind != ProtobufField::Kind::bytes) return {};
  switch (field.number) {
    case onnx_attribute::kTensor:
    case onnx_attribute::kTensors: {
      WEFT_TRY(const OnnxTensor tensor, read_onnx_tensor(file_, field.bytes));
      return tensors_.add(name_, tensor);
    }
    case onnx_attribute::kGraph:
    case onnx_attribute::kGraphs:
      return read_graph(field.bytes);
    case onnx_attribute::kSparse:
    case onnx_attribute::kSparses:
      return read_sparse(field.bytes, false);
    default:
      return {};
  }
}

Status OnnxModel::read_function(Range function) {
  std::string name;
  WEFT_CHECK(file_.each_field(function, [&](const ProtobufField& field) -> Status {
    if (field.is_bytes(onnx_function::kName)) {
      WEFT_TRY(name, name_in(field));
    }
    return {};
  }));
  return below(name, [&] {
    std::uint64_t nodes = 0;
    return file_.each_field(function, [&](const ProtobufField& field) -> Status {
      if (field.is_bytes(onnx_function::kNodes)) return read_node(field.bytes, ++nodes);
      return field.is_bytes(onnx_function::kDefaults) ? read_attribute(field.bytes) : Status{};
    });
  });
}

Status OnnxModel::read_training(Range training) {
  return file_.each_field(training, [&](const ProtobufField& field) -> Status {
    if (field.is_bytes(onnx_training::kInitialization))
      return below("initialization", [&] { return read_graph(field.bytes); });
    if (field.is_bytes(onnx_training::kAlgorithm)) return below("algorithm", [&] { return read_graph(field.bytes); });
    return {};
  });
}

// A sparse tensor has no name of its own: as an initializer it has that of its values.
Status OnnxModel::read_sparse(Range sparse, bool own_name) {
  std::optional<OnnxTensor> values, indices;
  WEFT_CHECK(file_.each_field(sparse, [&](const ProtobufField& field) -> Status {
    if (!field.is_bytes(onnx_sparse::kValues) && !field.is_bytes(onnx_sparse::kIndices)) return {};
    auto& part = field.number == onnx_sparse::kValues ? values : indices;
    WEFT_TRY(part, read_onnx_tensor(file_, field.bytes));
    return {};
  }));
  const auto add_parts = [&]() -> Status {
    if (values) WEFT_CHECK(below("values", [&] { return tensors_.add(name_, *values); }));
    return indices ? below("indices", [&] { return tensors_.add(name_, *indices); }) : Status{};
  };
  return own_name && values ? below(values->name, add_parts) : add_parts();
}

Status OnnxModel::add_initializer(Range tensor) {
  WEFT_TRY(const OnnxTensor read, read_onnx_tensor(file_, tensor));
  return below(read.name, [&] { return tensors_.add(name_, read); });
}

Status OnnxModel::below(std::string_view key, const std::function<Status()>& inside) {
  const std::size_t before = name_.size();
  if (before <= limits::kTensorNameMax) {
    if (before > 0) name_ += '.';
    name_ += key;
  }
  Status done = inside();
  name_.resize(before);
  return done;
}

// True for the version of the format and the name of a producer, as most writers begin a model. No text begins with
// these bytes.
bool begins_like_onnx(std::span<const std::byte> head) {
  constexpr std::size_t kNameAt = 4;
  constexpr unsigned kIrVersionMax = 31, kNameMax = 127;
  if (head.size() <= kNameAt) return false;
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(head[i]); };
  if (at(0) != 0x08 || at(1) == 0 || at(1) > kIrVersionMax || at(2) != 0x12 || at(3) == 0 || at(3) > kNameMax)
    return false;
  const auto is_printed = [](std::byte b) { return b >= std::byte{0x20} && b <= std::byte{0x7e}; };
  const auto rest = head.subspan(kNameAt);
  const std::size_t in_head = std::min<std::size_t>(at(3), rest.size());
  if (!std::ranges::all_of(rest.first(in_head), is_printed)) return false;
  constexpr std::string_view kNextFields = "\x1a\x22\x28\x32\x3a\x42\x72";
  return rest.size() == in_head || kNextFields.find(static_cast<char>(rest[in_head])) != kNextFields.npos;
}

class Onnx final : public Format {
 public:
  std::string_view name() const override { return "onnx"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name.ends_with(".onnx") || begins_like_onnx(head);
  }

  Result<Layout> parse(FormatInput& files) const override {
    auto layout = OnnxModel(files).read();
    if (!layout.ok() && is_malformed(layout.error())) return Error{Errc::unsupported, layout.error().message};
    return layout;
  }
};

}  // namespace

const Format& onnx_format() {
  static const Onnx format;
  return format;
}

}  // namespace weft
