// Plans events: checks requests against the index and allocates numbers. Under the writer lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store_rows.h"

namespace weft {

struct TakenContent;

// Errc::exists if the model's name would hide another's or has another kind, Errc::invalid if it is no valid name,
// Errc::not_found for a parent that is not live, Errc::exists if the number of `request.given` is used. plan_version()
// returns the version's row without its numbers.
Result<VersionRow> plan_version(Txn& txn, const PublishRequest& request, const Digest& manifest);
// `taken` is set if the version has taken its content already (attach.h).
Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs, const TakenContent* taken = nullptr);
// A wish without a number deletes the tag. Errc::not_found: no such model, version or tag. Errc::permission: a tag is
// protected from `by`; the plans of a publish, a removal and a rename fail so too. Omits wishes that change nothing.
using TagWish = std::pair<std::string, std::optional<std::uint64_t>>;
Result<TagsEvent> plan_tags(Txn& txn, std::string_view model, const std::vector<TagWish>& wishes, const Author& by);
// Protects a tag for `by`, or ends the protection. Returns nothing if that is so already. Errors as plan_tags().
Result<std::optional<TagsEvent>> plan_protection(Txn& txn, std::string_view model, std::string_view tag, bool on,
                                                 const Author& by);
Result<RemovalEvent> plan_removal(Txn& txn, std::string_view model, std::uint64_t number, const Author& by);
// Returns nothing if the note would not change.
Result<std::optional<NoteEvent>> plan_note(Txn& txn, const VersionRow& version, VersionNote note, bool set);

// Returns nothing if the description is so already. Errc::not_found: no such live version; Errc::invalid as
// described().
Result<std::optional<DescriptionEvent>> plan_description(Txn& txn, std::string_view model, std::uint64_t number,
                                                         const DescriptionChange& change);

// Errc::not_found: no live model of this name. Errc::invalid: the same name, or no valid one. Errc::exists: another
// model has the new name or had it, or a model would hide another.
Result<RenameEvent> plan_rename(Txn& txn, std::string_view model, std::string_view to, const Author& by);

// Returns the live version with that number. Errc::not_found names the model and the number.
Result<VersionRow> live_version(Txn& txn, std::string_view model, std::uint64_t number);
// Returns the newest live version of the request's model if it has this manifest: the publish then makes no version.
// Nothing if the request keeps a given record.
Result<std::optional<VersionRow>> same_as(Txn& txn, const PublishRequest& request, const Digest& manifest);

// The parts of a plan, also for events that mirror a registry.
//
// Allocates inode numbers from next_ino on. apply_publish() advances the counters themselves.
class Allocator {
 public:
  explicit Allocator(const Counters& counters) : next_(counters.next_ino) {}
  Ino one() { return next_++; }
  Ino range(std::uint64_t count) {
    Ino base = next_;
    next_ += count;
    return base;
  }
  Ino next() const { return next_; }  // the next result of one()
  // Errc::unsupported if the store has used all inode numbers of a mount.
  Status check_room() const;

 private:
  Ino next_;
};

// Errc::unsupported if the event's version or model has an id above limits::kIdMax.
Status check_ids(const VersionRow& version);
// `leaving`: a visible model that gives up its name at the same moment.
Status check_hides_none(Txn& txn, std::string_view name, std::string_view leaving = {});
// Errc::exists: the name has live versions of another kind.
Status check_kind(Txn& txn, std::string_view name, VersionKind kind);

// Sets the numbers of the event's model, existing or new, and the version's number, which is the model's next.
Status plan_model(Txn& txn, PublishEvent& event, const Counters& counters, Allocator& inos);
// Returns all namespace paths above a model's name, with their inodes.
Result<std::vector<NamedInode>> plan_directories(Txn& txn, std::string_view model, Allocator& inos);
Status plan_tags_of(Txn& txn, PublishEvent& event, std::vector<std::string> tags, Allocator& inos);
// Returns the inode of each view, by tensor ordinal. A view in the index keeps its inode. Other views get their inode
// of `given`, which the version had before its manifest was lost, or a new inode if `given` is empty.
Result<std::vector<Ino>> plan_views(Txn& txn, const VersionContent& content, Allocator& inos,
                                    const std::vector<Ino>& given = {});

// Returns the numbers of the blobs (LocalRow::blobs). A blob with a number keeps it. Other blobs get their number of
// `given`, as in plan_views(), or new numbers from `next` on.
Result<std::vector<Range>> plan_blobs(Txn& txn, const VersionContent& content, std::uint64_t next,
                                      const std::vector<Range>& given = {});
std::vector<std::uint64_t> numbers_in(const std::vector<Range>& runs);

}  // namespace weft
