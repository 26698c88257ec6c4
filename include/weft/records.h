// Containers: files of a data set that hold many records, which a loader asks for one by one. A record is a run of the
// file's bytes with a name. A scanner finds the records of one container; it is pure, lives in src/format/, and is
// fuzzed, because the bytes are hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "weft/content.h"
#include "weft/format.h"
#include "weft/result.h"

namespace weft {

struct Record {
  std::string_view name;     // 1 to limits::kRecordNameMax bytes, any bytes: a member's path, or a key
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes; [offset, offset + length) lies in the file
};

// The records of a container as rows of a table, by offset. Lives as long as it needs; any thread.
struct RecordRows {
  std::uint64_t count = 0;
  std::function<Range(std::uint64_t number)> row;  // number < count
};

// Takes what a scanner finds, in the scanner's order. An error ends the scan and is its result. Names are valid during
// the call.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual Status record(const Record& record) = 0;
  // Another name of a record, which may come before or after it, or never: a link of a tar. Both are paths as
  // File::path.
  virtual Status link(std::string_view name, std::string_view target) = 0;
  // A member that is no record and cannot be shown. `why` is one phrase: "a device".
  virtual Status left_out(std::string_view name, std::string_view why) = 0;
};

// Errc::invalid: the bytes are no container of this kind; what the sink was given counts for nothing then. The message
// says why, in one line. Errc::unsupported: one that weft does not know. Else what the source or the sink failed with.
// One thread.
class RecordScanner {
 public:
  virtual ~RecordScanner() = default;
  // The file's bytes from front to back, each once, in parts of any size, while they are read for another purpose.
  virtual Status feed(std::span<const std::byte> bytes) = 0;
  // After all of them. `source` is the same file.
  virtual Status finish(ByteSource& source) = 0;
};

class ContainerFormat {
 public:
  virtual ~ContainerFormat() = default;
  virtual std::string_view name() const = 0;
  // Does a file of this name (base name) that starts with these bytes (up to kContainerHead) claim to be of this kind?
  virtual bool claims(std::string_view file_name, std::span<const std::byte> head) const = 0;
  virtual bool names_are_paths() const = 0;  // so that records can be shown as files
  // `sink` outlives the scanner. `size` is the file's.
  virtual std::unique_ptr<RecordScanner> scan(std::uint64_t size, RecordSink& sink) const = 0;
};
inline constexpr std::size_t kContainerHead = 512;

// The kind of container that the file claims to be; nullptr: none.
const ContainerFormat* container_format(std::string_view file_name, std::span<const std::byte> head);

}  // namespace weft
