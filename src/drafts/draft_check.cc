#include "drafts/draft_check.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "drafts/publish_folder.h"
#include "os/entries.h"
#include "os/open_beneath.h"
#include "os/tree_walk.h"
#include "weft/model/format.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{1000}, kShortPatience{200}, kPause{5};
constexpr std::uint64_t kStepsMax = 1024;  // between two calls of GoesOn

constexpr std::string_view kElsewhere =
    "its rank wrote on another node; save to a shared file system and `weft import` it";

Error invalid(const std::string& path, std::string_view what) {
  return {Errc::invalid, fmt::format("{}: {}", printable(path), what)};
}

// One check of a draft, with its patience for writers.
class Check {
 public:
  Check(int root, const GoesOn& goes_on, std::chrono::milliseconds patience)
      : root_(root), goes_on_(goes_on), patience_(patience) {}

  Status run(std::size_t files_max) {
    WEFT_TRY(const Fd root, open_directory_at(root_, "."));
    TreeWalk walk(files_max);
    walk.visit = [this](const TreeEntry& entry) { return visit(entry); };
    walk.leave = [this](const TreeEntry* entry, int /*directory*/, const std::vector<std::string>& names) {
      return check_distributed(names, entry == nullptr ? "" : entry->path + "/");
    };
    return walk_tree(root, "", walk);
  }

 private:
  Result<WalkNext> visit(const TreeEntry& entry) {
    WEFT_CHECK(count_step());
    const mode_t mode = entry.st.st_mode;
    if (S_ISDIR(mode)) return WalkNext::enter;
    if (S_ISLNK(mode)) WEFT_CHECK(check_link(entry.path));
    if (S_ISLNK(mode)) return WalkNext::pass;
    if (!S_ISREG(mode)) return invalid(entry.path, "expected a file, a directory or a link, got a special file");
    WEFT_TRY(const Fd file, open_at(entry.directory, entry.name, O_RDONLY | O_NONBLOCK));
    WEFT_CHECK(wait_for_writers(file.get(), entry.path));
    return WalkNext::pass;
  }

  // Allows links within the draft only: this process may read what the user may not.
  Status check_link(const std::string& path) const {
    const auto target = open_beneath(root_, path, O_PATH, 0, Resolve::links_within);
    const auto st = target.ok() ? stat_fd(target->get(), path) : Result<struct stat>(target.error());
    if (!st.ok())
      return invalid(path, "expected a link to a file of the draft, got one that leads elsewhere or nowhere");
    if (!S_ISREG(st->st_mode)) return invalid(path, "expected a link to a file, got one to something else");
    return {};
  }

  // Call for each step of the check: a draft may have millions of them.
  Status count_step() { return ++steps_ % kStepsMax != 0 ? Status{} : goes_on_(); }

  Status wait_for_writers(int fd, const std::string& path) const {
    while (!not_written(fd)) {
      if (Clock::now() - begin_ > patience_)
        return Error{Errc::busy, fmt::format("{}: somebody has it open for writing, or mapped; close it and rename "
                                             "again",
                                             printable(path))};
      WEFT_CHECK(goes_on_());
      std::this_thread::sleep_for(kPause);
    }
    return {};
  }

  // Refuses a distributed checkpoint with missing or short parts: its ranks on other nodes wrote into the new/ of their
  // own node, or a rank has not written all.
  Status check_distributed(const std::vector<std::string>& names, const std::string& inside) {
    if (has(names, kCheckpointMetadata)) return check_parts(names, inside, {std::string(kCheckpointMetadata)});
    if (has(names, rank_metadata(0))) return check_ranks(names, inside);
    const auto is_part = [](const std::string& name) { return name.ends_with(kCheckpointShardSuffix); };
    const auto part = std::ranges::find_if(names, is_part);
    if (part == names.end()) return {};
    return invalid(inside + *part,
                   fmt::format("a part of a distributed checkpoint without {}: {}", kCheckpointMetadata, kElsewhere));
  }

  // `names` are sorted.
  static bool has(const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::binary_search(names, name);
  }

  // Refuses a distributed checkpoint if metadata of a rank is missing: files of this rank, or of later ranks, are
  // there.
  Status check_ranks(const std::vector<std::string>& names, const std::string& inside) {
    std::uint32_t ranks = 1;
    while (has(names, rank_metadata(ranks))) ++ranks;
    for (const std::string& name : names) {
      WEFT_CHECK(count_step());
      if (const auto rank = checkpoint_rank(name); rank && *rank >= ranks)
        return invalid(inside + name, fmt::format("a part of a distributed checkpoint without {}: {}",
                                                  rank_metadata(ranks), kElsewhere));
    }
    std::vector<std::string> metadata;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) metadata.push_back(rank_metadata(rank));
    return check_parts(names, inside, metadata);
  }

  // `names` are sorted: the texts are the user's, and may name as many parts as they have room for. Metadata that weft
  // cannot read may be another program's: it is published as any other file.
  Status check_parts(const std::vector<std::string>& names, const std::string& inside,
                     const std::vector<std::string>& metadata) {
    WEFT_TRY(std::optional<std::vector<std::string>> texts, read_metadata(inside, metadata));
    if (!texts) return {};
    const auto parts = parts_of_checkpoint(*std::move(texts));
    if (!parts.ok()) return {};
    for (const CheckpointFile& part : parts->files) {
      WEFT_CHECK(count_step());
      const std::string where = inside + namer_of(part, metadata);
      if (!std::ranges::binary_search(names, part.name))
        return invalid(where,
                       fmt::format("names the part {}, which is not here: {}", printable(part.name), kElsewhere));
      WEFT_TRY(const std::uint64_t bytes, size_of(inside + part.name));
      if (bytes < part.bytes)
        return invalid(where, fmt::format("expected at least {} bytes of its part {}, got {}", part.bytes,
                                          printable(part.name), bytes));
    }
    // PyTorch checks this itself before it writes .metadata, where it knows all ranks.
    if (metadata.front() == kCheckpointMetadata || parts->unfilled.empty()) return {};
    return invalid(inside + metadata.back(),
                   fmt::format("is not the last rank's, for the tensor {} has more shards: {}",
                               printable(parts->unfilled), kElsewhere));
  }

  // Returns which of these files names the part: a rank names parts of its own.
  static std::string namer_of(const CheckpointFile& part, const std::vector<std::string>& metadata) {
    const auto rank = checkpoint_rank(part.name);
    return rank && *rank < metadata.size() ? metadata[*rank] : metadata.front();
  }

  // None: the format does not read them either.
  Result<std::optional<std::vector<std::string>>> read_metadata(const std::string& inside,
                                                                const std::vector<std::string>& names) const {
    std::vector<std::string> texts;
    std::uint64_t left = limits::kPickleMax;
    for (const std::string& name : names) {
      const std::string path = inside + name;
      WEFT_TRY(const Fd file, open_beneath(root_, path, O_RDONLY | O_NONBLOCK, 0, Resolve::links_within));
      WEFT_TRY(const struct stat st, stat_fd(file.get(), path));
      if (!S_ISREG(st.st_mode) || static_cast<std::uint64_t>(st.st_size) > left)
        return std::optional<std::vector<std::string>>();
      left -= static_cast<std::uint64_t>(st.st_size);
      WEFT_TRY(const auto bytes, read_whole(file.get(), st, limits::kPickleMax, path));
      texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return std::optional(std::move(texts));
  }

  Result<std::uint64_t> size_of(const std::string& path) const {
    WEFT_TRY(const Fd file, open_beneath(root_, path, O_PATH, 0, Resolve::links_within));
    WEFT_TRY(const struct stat st, stat_fd(file.get(), path));
    return S_ISREG(st.st_mode) ? static_cast<std::uint64_t>(st.st_size) : 0;
  }

  const int root_;
  const GoesOn& goes_on_;
  const std::chrono::milliseconds patience_;
  const Clock::time_point begin_ = Clock::now();
  std::uint64_t steps_ = 0;
};

}  // namespace

Result<std::optional<DraftFacts>> check_draft(int content, const GoesOn& goes_on, std::size_t files_max) {
  for (const char* note : {kDraftErrorFile, kDraftPublishedFile}) static_cast<void>(remove_at(content, note));
  WEFT_CHECK(Check(content, goes_on, kPatience).run(files_max));
  return read_draft_facts(content);
}

Status check_not_written(int content, bool waits) {
  const GoesOn always = [] { return Status(); };
  const auto patience = waits ? kShortPatience : std::chrono::milliseconds(0);
  const Status checked = Check(content, always, patience).run(limits::kFilesPerVersionMax);
  return checked.ok() || checked.error().code != Errc::busy ? Status{} : checked;
}

Error refuse(int content, const Error& error) {
  log_info("a draft is not published: {}", error.message);
  static_cast<void>(leave_note(content, kDraftErrorFile, 0600, error.message + "\n"));
  return {error.code, error.message};
}

}  // namespace weft
