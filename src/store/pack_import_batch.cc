// Importer: extents that fit a window.
#include <cstring>

#include "store/pack_import.h"

namespace weft {
namespace {

// Less is written sooner than another thread is awake.
constexpr std::size_t kWriteAheadMin = 64U << 10U;

// Neighbours in the window that are neighbours in the pack too: written together.
struct Run {
  PackWriter* pack = nullptr;
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;

  bool extend(PackWriter* to, std::uint64_t at, std::span<const std::byte> more) {
    if (pack != to || offset + bytes.size() != at || bytes.data() + bytes.size() != more.data()) return false;
    bytes = {bytes.data(), bytes.size() + more.size()};
    return true;
  }
  Status write() const { return bytes.empty() ? Status{} : pack->write(offset, bytes); }
  void start_writing(JobGroup& group) const {
    if (!bytes.empty()) group.run([run = *this] { return run.write(); });
  }
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Result<std::size_t> Importer::add_batch(Source& source, std::size_t first) {
  while (!unresolved_.empty() && unresolved_.front() == &ring_.next()) WEFT_CHECK(resolve_oldest());
  WEFT_TRY(ImportWindow * window, ring_.take());
  std::size_t count = window->count_fitting(file_.ranges.subspan(first));
  WEFT_CHECK(window->fill(source, file_.ranges.subspan(first, count), first, proves()));
  unresolved_.push_back(window);
  while (!unresolved_.empty() && unresolved_.front()->hashing.idle()) WEFT_CHECK(resolve_oldest());
  return count;
}

Status Importer::resolve_all() {
  while (!unresolved_.empty()) WEFT_CHECK(resolve_oldest());
  return {};
}

Status Importer::resolve_oldest() {
  ImportWindow& window = *unresolved_.front();
  unresolved_.pop_front();
  WEFT_CHECK(window.finish_ids(proves()));
  WEFT_TRY(Claims claims, claim_new(window));
  for (const WindowExtent& extent : window.extents) file_.ids[extent.range] = extent.id;
  return write_new(window, claims);
}

Result<std::vector<StoredMatch>> Importer::match_stored(ImportWindow& window) {
  std::vector<ContentId> ids;
  ids.reserve(window.extents.size());
  for (const WindowExtent& extent : window.extents) ids.push_back(extent.id);
  WEFT_TRY(auto candidates, known_.look_up(ids, proves()));
  std::vector<StoredMatch> matches(ids.size());
  if (!proves()) {
    WEFT_CHECK(compare_stored(window, candidates, matches));
    return matches;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (candidates[i].empty()) continue;
    matches[i].equal = candidates[i].front().id;
    known_.share(candidates[i].front().id, candidates[i].front().place);
  }
  return matches;
}

Status Importer::compare_stored(ImportWindow& window, std::span<const std::vector<Candidate>> candidates,
                                std::vector<StoredMatch>& matches) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty()) continue;
    window.hashing.run(
        [bytes = window.bytes_of(window.extents[i]), &own = candidates[i], &match = matches[i]]() -> Status {
          for (const Candidate& candidate : own) {
            WEFT_TRY(bool equal, equals_twin(bytes, {candidate.place.pack->fd(), candidate.place.offset}));
            if (equal) match.equal = candidate.id;
            if (equal) break;
            match.taken.push_back(candidate.id.root);
          }
          return {};
        });
  }
  return window.hashing.wait();
}

// Content that came earlier in this import; numbers from `first_fresh` on are of this window and not placed yet.
Status Importer::match_fresh(ImportWindow& window, std::size_t first_fresh, const WindowExtent& extent,
                             StoredMatch& match) {
  for (std::size_t number : fresh_.find(extent.id.length, extent.id.xxh)) {
    bool equal = proves() && fresh_.id(number).root == extent.id.root;
    if (!proves() && number >= first_fresh) {
      equal = same_bytes(window.bytes_of(window.extents[window.fresh_extents[number - first_fresh]]),
                         window.bytes_of(extent));
    } else if (!proves()) {
      WEFT_CHECK(ring_.wait_writing());
      Twin twin{fresh_.pack_of(number)->fd(), fresh_.place_of(number).offset};
      WEFT_TRY(equal, equals_twin(window.bytes_of(extent), twin));
    }
    if (equal) {
      match.equal = fresh_.id(number);
      return {};
    }
    match.taken.push_back(fresh_.id(number).root);
  }
  return {};
}

Result<Claims> Importer::claim_new(ImportWindow& window) {
  WEFT_TRY(std::vector<StoredMatch> matches, match_stored(window));
  Claims claims(window.extents.size());
  const std::size_t first_fresh = fresh_.all().size();
  window.fresh_extents.clear();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    WindowExtent& extent = window.extents[i];
    if (!matches[i].equal) WEFT_CHECK(match_fresh(window, first_fresh, extent, matches[i]));
    last_was_known_ = matches[i].equal.has_value();
    if (last_was_known_) {
      extent.id = *matches[i].equal;
      note_known(extent.range);
      continue;
    }
    if (!proves()) extent.id.root = unused_root(matches[i].taken);
    claims[i] = fresh_.claim(extent.id);
    window.fresh_extents.push_back(i);
  }
  return claims;
}

Status Importer::write_new(ImportWindow& window, const Claims& claims) {
  Run run;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i]) continue;
    WindowExtent& extent = window.extents[i];
    WEFT_TRY(Spot spot, next_spot(extent.range));
    fresh_.place(*claims[i], *spot.pack, spot.offset, std::move(extent.chunks));
    if (file_.cloned && spot.pack == file_.own) continue;
    if (run.extend(spot.pack, spot.offset, window.bytes_of(extent))) continue;
    run.start_writing(window.writing);
    run = {spot.pack, spot.offset, window.bytes_of(extent)};
  }
  if (run.bytes.size() < kWriteAheadMin && ring_.writing_idle()) return run.write();
  run.start_writing(window.writing);
  return {};
}

}  // namespace weft
