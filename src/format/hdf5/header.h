// Object headers of HDF5: what says of a group which links it has, and of a dataset where its bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/hdf5/file.h"
#include "weft/result.h"

namespace weft {

// Numbers of the specification.
enum class Hdf5MessageType : std::uint16_t {
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  filters = 0x0b,
  attribute = 0x0c,
  continuation = 0x10,
  symbol_table = 0x11,
};

struct Hdf5Message {
  Hdf5MessageType type{};     // any number of 16 bits
  bool shared = false;        // the body says where the message is
  std::uint64_t address = 0;  // of the body
  std::span<const std::byte> body;
};

class Hdf5Header {
 public:
  // Reads an object header of version 1 or 2, with its continuations.
  static Result<Hdf5Header> read(Hdf5File& file, std::uint64_t at);

  std::span<const Hdf5Message> messages() const { return messages_; }
  const Hdf5Message* find(Hdf5MessageType type) const;  // the first one; nullptr: there is none

 private:
  struct Chunk {
    std::uint64_t at = 0, length = 0;
  };
  struct Form {
    bool checked = false;        // version 2: chunks have a checksum
    std::size_t head_bytes = 8;  // of a message
  };

  Status read_first(Hdf5File& file, std::uint64_t at);
  Status read_second_version(Hdf5File& file, std::uint64_t at, const Hdf5Block& begin);
  Status read_continuations(Hdf5File& file);
  Status add_messages(Hdf5File& file, Hdf5Fields fields, std::uint64_t at);

  std::vector<Hdf5Block> blocks_;
  std::vector<Hdf5Message> messages_;
  std::vector<Chunk> continuations_;
  Form form_;
};

}  // namespace weft
