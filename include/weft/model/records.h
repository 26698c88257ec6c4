// Containers (format/tar.cc, format/lmdb.cc): files of a data set with many records, which a loader reads one by one. A
// record is a named run of the file's bytes. A scanner finds the records of one container. It is pure, lives in
// src/format/, and is fuzzed, because the bytes are untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

struct Record {
  std::string_view name;     // 1 to limits::kRecordNameMax bytes, any bytes: a member's path, or a key
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes; [offset, offset + length) lies in the file
};

// The records of a container as rows of a table, by offset. Keeps the table alive; any thread.
struct RecordRows {
  std::uint64_t count = 0;
  std::function<Range(std::uint64_t number)> row;  // number < count
};

// Receives the records that a scanner finds, in the scanner's order. An error ends the scan and is its result. Names
// are valid during the call.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual Status record(const Record& record) = 0;
  // A link of a tar: another name of a record. The record may precede or follow the link, or be missing. Both names are
  // paths as File::path.
  virtual Status link(std::string_view name, std::string_view target) = 0;
  // A member that is not a record and cannot be shown. `why` is one phrase: "a device".
  virtual Status left_out(std::string_view name, std::string_view why) = 0;
};

// Finds the records of one container. Errc::invalid: the bytes are not a container of this kind; the records in the
// sink are then void, and the message says why in one line. Errc::unsupported: a container that weft does not know.
// Other errors come from the source or the sink. One thread.
class RecordScanner {
 public:
  virtual ~RecordScanner() = default;
  // Receives the file's bytes from front to back, each once, in parts of any size, while they are read for another
  // purpose.
  virtual Status feed(std::span<const std::byte> bytes) = 0;
  // Call after all bytes. `source` is the same file.
  virtual Status finish(ByteSource& source) = 0;
};

class ContainerFormat {
 public:
  virtual ~ContainerFormat() = default;
  virtual std::string_view name() const = 0;
  // True if a file of this name (base name) that starts with these bytes (up to kContainerHead) claims to be of this
  // kind.
  virtual bool claims(std::string_view file_name, std::span<const std::byte> head) const = 0;
  virtual bool names_are_paths() const = 0;  // then records can be shown as files
  // Returns a scanner for a file of `size` bytes. `sink` outlives it.
  virtual std::unique_ptr<RecordScanner> scan(std::uint64_t size, RecordSink& sink) const = 0;
};
inline constexpr std::size_t kContainerHead = 512;

// Returns the kind of container that the file claims to be; nullptr: none.
const ContainerFormat* container_format(std::string_view file_name, std::span<const std::byte> head);

}  // namespace weft
