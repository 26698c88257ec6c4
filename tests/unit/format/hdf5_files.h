// HDF5 files for tests: those of the fuzzer's corpus, which h5py wrote, and files that are put together here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/format.h"

namespace weft::testing {

// Returns tests/fuzz/corpus/hdf5/NAME; tests/fuzz/make_corpus.py has its content.
std::string hdf5_sample(std::string_view name);
std::vector<std::string> hdf5_sample_names();

// Returns the layout of a file named m.h5. Its tensors may overlap.
Layout hdf5_layout(std::string_view file);
// Returns the reason why the file is opaque.
std::string hdf5_opaque(std::string_view file);
// nullptr: there is none of this name.
const FoundTensor* hdf5_tensor(const Layout& layout, std::string_view name);
std::string hdf5_hidden_why(const Layout& layout, std::string_view name);  // "": not hidden
// Returns the bytes of all parts.
std::string hdf5_bytes(const FoundTensor& tensor, std::string_view file);

// Messages of object headers, as the core of the format has them.
std::string h5_message(unsigned type, const std::string& body, unsigned flags = 0);
std::string h5_header(const std::vector<std::string>& messages);  // version 1
std::string h5_link(std::string_view name, std::uint64_t header);
std::string h5_space(const std::vector<std::uint64_t>& shape);
std::string h5_float_type();  // F32
std::string h5_contiguous(std::uint64_t at, std::uint64_t length);
// Version 3. The dimensions end with the bytes of an element.
std::string h5_chunked(std::uint64_t tree, const std::vector<std::uint64_t>& dimensions);

// A file of 8 KiB. The root group's header is at kRoot.
class H5File {
 public:
  static constexpr std::uint64_t kRoot = 96, kDataset = 1024, kSpare = 2048, kData = 4096, kSize = 8192;
  H5File();
  H5File& put(std::uint64_t at, std::string_view bytes);
  // Puts a dataset named "w" with these messages.
  H5File& dataset(const std::vector<std::string>& messages);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace weft::testing
