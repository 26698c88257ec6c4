// Makes events: checks what is asked for against the index and gives out numbers. Under the writer lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/content.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct TakenContent;

// Errc::exists or invalid when the model's name would hide another's, Errc::not_found for a parent that is not live.
// The first gives what is said of the version: all but its numbers.
Result<VersionRow> plan_version(Txn& txn, const PublishRequest& request, const Digest& manifest);
// `taken`: the version has its content already (taking.h).
Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs, const TakenContent* taken = nullptr);
// An empty number deletes the tag. Errc::not_found. Changes that are so already are left out.
using TagWish = std::pair<std::string, std::optional<std::uint64_t>>;
Result<TagsEvent> plan_tags(Txn& txn, std::string_view model, const std::vector<TagWish>& wishes);
Result<RemovalEvent> plan_removal(Txn& txn, std::string_view model, std::uint64_t number);
// Nothing if the note is so already.
Result<std::optional<NoteEvent>> plan_note(Txn& txn, const VersionRow& version, VersionNote note, bool set);

// The live version of that number. Errc::not_found, with what was asked for.
Result<VersionRow> live_version(Txn& txn, std::string_view model, std::uint64_t number);
// The newest live version, if it has this content.
Result<std::optional<VersionRow>> newest_with(Txn& txn, std::string_view model, const Digest& manifest);

// The parts of a plan, for those who make events of what a registry tells.
// Gives out what the counters have next; apply_publish moves the counters themselves.
class Allocator {
 public:
  explicit Allocator(const Counters& counters) : next_(counters.next_ino) {}
  Ino one() { return next_++; }
  Ino range(std::uint64_t count) {
    Ino base = next_;
    next_ += count;
    return base;
  }
  Ino next() const { return next_; }  // what one() would give
  // Errc::unsupported if the store has given out all numbers of a mount.
  Status check_room() const;

 private:
  Ino next_;
};

// Errc::unsupported if the event's version or model has an id above limits::kIdMax.
Status check_ids(const VersionRow& version);
Status check_hides_none(Txn& txn, std::string_view name);
// Errc::exists: the name is one of another kind, also if all its versions are removed.
Status check_kind(Txn& txn, std::string_view name, VersionKind kind);

// Numbers of the event's model, known or new, by its name; the version's is the model's next.
Status plan_model(Txn& txn, PublishEvent& event, const Counters& counters, Allocator& inos);
Status plan_directories(Txn& txn, PublishEvent& event, Allocator& inos);
Status plan_tags_of(Txn& txn, PublishEvent& event, std::vector<std::string> tags, Allocator& inos);
// By tensor ordinal: of a view that the index knows the one it has, else that of `given`, numbers that this version's
// views had before its manifest was lost, if there are any.
Result<std::vector<Ino>> plan_views(Txn& txn, const VersionContent& content, Allocator& inos,
                                    const std::vector<Ino>& given = {});

// The numbers of its blobs (LocalRow::blobs): of a blob that has one that, else one of `given`, as above, or the next.
Result<std::vector<Range>> plan_blobs(Txn& txn, const VersionContent& content, std::uint64_t next,
                                      const std::vector<Range>& given = {});
std::vector<std::uint64_t> numbers_in(const std::vector<Range>& runs);

}  // namespace weft
