// A TensorProto of ONNX: what it says about itself, and the place of its elements.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/other_files.h"
#include "format/protobuf.h"
#include "format/tensor_list.h"
#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// As the file has it, unchecked.
struct OnnxTensor {
  // The fields of numbers that have a type (float_data and others): how many fields, their bytes, and the last one.
  struct Numbers {
    std::uint64_t fields = 0, bytes = 0;
    Range last;
  };

  std::string name;
  std::uint64_t type = 0;                                    // of TensorProto.DataType
  Shape shape;                                               // at most limits::kDimensionsMax + 1 dimensions
  bool is_segment = false;                                   // one part of a tensor
  bool is_external = false;                                  // the elements lie in another file
  std::optional<Range> raw;                                  // raw_data
  std::array<Numbers, 12> numbers;                           // by number of the field
  std::map<std::string, std::string, std::less<>> external;  // external_data: "location", "offset", "length"
};

Result<OnnxTensor> read_onnx_tensor(ProtobufReader& file, Range message);

// Finds the elements of tensors, in the model's file and in the files beside it. One thread.
class OnnxTensors {
 public:
  OnnxTensors(FormatInput& files, Layout& layout) : layout_(layout), list_(layout), others_(files, layout) {}

  // Adds a tensor under this name to the layout, or hides it with a reason. Errors come from the source.
  Status add(std::string name, const OnnxTensor& tensor);
  void finish() { list_.finish(); }

 private:
  // Returns the run of a tensor of `bytes` bytes. An error of the file is the reason why the tensor is hidden.
  Result<TensorPart> run_of(const OnnxTensor& tensor, std::uint64_t bytes);
  Result<TensorPart> external_run(const OnnxTensor& tensor, std::uint64_t bytes);

  Layout& layout_;
  TensorList list_;
  OtherFiles others_;
};

}  // namespace weft
