// A journal in a temporary directory, and damage to its two files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "catalog/journal.h"
#include "diskformat/events.h"
#include "store_paths.h"
#include "testing.h"

namespace weft::testing {

struct TestJournal {
  TestJournal() { must(journal.create()); }
  // Appends the event durably. Returns the bytes of its record.
  Range append(const Event& event) {
    const auto record = encode_event(event, counters.journal_end);
    counters.journal_end += record.size();
    must(journal.append(record, counters));
    return {counters.journal_end - record.size(), record.size()};
  }
  std::string log() const { return dir / "journal/0000000000000001.log"; }
  std::string copy() const { return dir / "journal/0000000000000001.copy"; }
  static void flip(const std::string& file, std::uint64_t at) {
    std::string bytes = read_text(file);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(file, bytes);
  }
  void flip_log(const Range& record) const { flip(log(), record.offset + record.length - 1); }
  void flip_copy(const Range& record) const { flip(copy(), kMarksBytes + record.offset + record.length - 1); }

  TempDir dir;
  Journal journal{safe(dir.path())};
  Counters counters;  // of the last record
};

// Sets the tag "t" of the model "m".
inline TagsEvent tag_event(std::uint64_t number) {
  return {number, "m", 1, {{"t", number, 5000}}};
}
inline PublishEvent publish_event(std::string_view model, ModelId id, std::uint64_t number, VersionId version) {
  PublishEvent event;
  event.version.id = version;
  event.version.model = id;
  event.version.model_name = model;
  event.version.number = number;
  return event;
}

}  // namespace weft::testing
