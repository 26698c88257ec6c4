// Importer: extents that are larger than a window.
#include <algorithm>

#include <fmt/core.h>

#include "store/pack_import.h"

namespace weft {

Status Importer::add_large(Source& source, std::size_t range) {
  WEFT_CHECK(resolve_all());
  const Range& here = file_.ranges[range];
  bool possible = fresh_.any_of_length(here.length);
  if (!possible) {
    WEFT_TRY(possible, known_.any_of_length(here.length));
  }
  if (!possible) return write_large(source, range, nullptr, {});
  // Where content was known so far, it is likely to be now: then one pass is enough if it proves at once.
  WEFT_TRY(Streamed seen, stream(ring_, source, {here, proves() && last_was_known_, nullptr, 0, {}}));
  WEFT_TRY(StoredMatch match, match_large(source, here, seen));
  last_was_known_ = match.equal.has_value();
  if (!last_was_known_) return write_large(source, range, &seen.id.xxh, match);
  file_.ids[range] = *match.equal;
  note_known(range);
  return {};
}

Result<std::vector<LargeTwin>> Importer::large_twins(const ContentId& id) {
  WEFT_TRY(auto stored, known_.look_up(std::span(&id, 1), false));
  std::vector<LargeTwin> twins;
  for (const Candidate& candidate : stored.front()) known_.share(candidate.id, candidate.place);
  for (const Candidate& candidate : stored.front())
    twins.push_back({candidate.id, {candidate.place.pack->fd(), candidate.place.offset}});
  for (std::size_t number : fresh_.find(id.length, id.xxh))
    twins.push_back({fresh_.id(number), {fresh_.pack_of(number)->fd(), fresh_.place_of(number).offset}});
  return twins;
}

Result<StoredMatch> Importer::match_large(Source& source, const Range& range, Streamed& seen) {
  WEFT_TRY(std::vector<LargeTwin> twins, large_twins(seen.id));
  StoredMatch match;
  if (twins.empty()) return match;
  if (proves() && seen.chunks.empty()) {
    WEFT_TRY(seen, stream(ring_, source, {range, true, nullptr, 0, {}}));
  }
  if (!proves()) WEFT_CHECK(ring_.wait_writing());  // twins may be of this import
  for (const LargeTwin& twin : twins) {
    bool equal = proves() && twin.id == seen.id;
    if (!proves()) {
      WEFT_TRY(Streamed compared, stream(ring_, source, {range, false, nullptr, 0, twin.twin}));
      equal = compared.equal;
    }
    if (equal) match.equal = twin.id;
    if (equal) break;
    match.taken.push_back(twin.id.root);
  }
  return match;
}

Status Importer::write_large(Source& source, std::size_t range, const Hash128* expected, const StoredMatch& match) {
  WEFT_TRY(Spot spot, next_spot(range));
  PackWriter* into = file_.cloned && spot.pack == file_.own ? nullptr : spot.pack;
  WEFT_TRY(Streamed written, stream(ring_, source, {file_.ranges[range], proves(), into, spot.offset, {}}));
  if (expected != nullptr && written.id.xxh != *expected)
    return Error{Errc::changed, fmt::format("{}: changed while it was read", source.where())};
  if (!proves()) written.id.root = unused_root(match.taken);
  file_.ids[range] = written.id;
  fresh_.place(fresh_.claim(written.id), *spot.pack, spot.offset, std::move(written.chunks));
  last_was_known_ = false;
  return {};
}

}  // namespace weft
