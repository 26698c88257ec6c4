#include "fuse/drafts/draft_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "fuse/drafts/publish_folder.h"
#include "fuse/kernel/errors.h"
#include "os/open_beneath.h"
#include "os/sys.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{1000}, kShortPatience{200}, kPause{5};

Error invalid(const std::string& path, std::string_view what) {
  return {Errc::invalid, fmt::format("{}: {}", printable(path), what)};
}

class Walk {
 public:
  Walk(int root, const std::function<bool()>& pause, std::chrono::milliseconds patience, std::size_t files_max)
      : root_(root), pause_(pause), patience_(patience), files_max_(files_max) {}

  Status look(int directory, const std::string& below, unsigned depth) {
    if (depth > limits::kPathComponentsMax) return invalid(below, "expected fewer directories inside one another");
    WEFT_TRY(const auto names, list_directory(Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), below));
    for (const std::string& name : names) WEFT_CHECK(look_at(directory, name, below, depth));
    return check_distributed(directory, names, below);
  }

 private:
  Status look_at(int directory, const std::string& name, const std::string& below, unsigned depth) {
    const std::string path = below.empty() ? name : below + "/" + name;
    if (++files_ > files_max_) return invalid(path, fmt::format("expected at most {} files in a version", files_max_));
    struct stat st {};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return sys_error(errno, path);
    if (S_ISLNK(st.st_mode)) return look_at_link(path);
    if (S_ISDIR(st.st_mode)) {
      const Fd inner(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!inner.valid()) return sys_error(errno, path);
      return look(inner.get(), path, depth + 1);
    }
    if (!S_ISREG(st.st_mode)) return invalid(path, "expected a file, a directory or a link, got a special file");
    const Fd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return sys_error(errno, path);
    return wait_for_writers(file.get(), path);
  }

  // Allows links within the draft only: this process may read what the user may not.
  Status look_at_link(const std::string& path) const {
    const Fd target(open_beneath(root_, path.c_str(), O_PATH, 0, Resolve::links_within));
    struct stat st {};
    if (!target.valid() || ::fstat(target.get(), &st) != 0)
      return invalid(path, "expected a link to a file of the draft, got one that leads elsewhere or nowhere");
    if (!S_ISREG(st.st_mode)) return invalid(path, "expected a link to a file, got one to something else");
    return {};
  }

  Status wait_for_writers(int fd, const std::string& path) {
    while (!not_written(fd)) {
      if (Clock::now() - begin_ > patience_)
        return Error{Errc::busy, fmt::format("{}: somebody has it open for writing, or mapped; close it and rename "
                                             "again",
                                             printable(path))};
      if (!pause_()) return Error{Errc::cancelled, "interrupted"};
      std::this_thread::sleep_for(kPause);
    }
    return {};
  }

  // Refuses a distributed checkpoint with missing parts: its ranks on other nodes wrote into the new/ of their own
  // node.
  static Status check_distributed(int directory, const std::vector<std::string>& names, const std::string& below) {
    const auto is_part = [](const std::string& name) { return name.ends_with(".distcp"); };
    const auto part = std::ranges::find_if(names, is_part);
    const std::string inside = below.empty() ? "" : below + "/";
    if (std::ranges::find(names, ".metadata") != names.end())
      return check_parts(directory, names, inside + ".metadata");
    if (part == names.end()) return {};
    return invalid(
        inside + *part,
        "a part of a distributed checkpoint without .metadata: its other ranks wrote on other nodes; save to "
        "a shared file system and `weft import` it");
  }

  static Status check_parts(int directory, const std::vector<std::string>& names, const std::string& where) {
    const Fd file(::openat(directory, ".metadata", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return sys_error(errno, where);
    WEFT_TRY(const struct stat st, stat_fd(file.get(), where));
    WEFT_TRY(const auto bytes, read_whole(file.get(), st, limits::kCheckpointMetadataMax, where));
    const std::string_view text = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    constexpr std::string_view kSuffix = ".distcp";
    for (std::size_t at = text.find(kSuffix); at != text.npos; at = text.find(kSuffix, at + 1)) {
      std::size_t begin = at;
      while (begin > 0 && is_name_byte(text[begin - 1])) --begin;
      const std::string name(text.substr(begin, at + kSuffix.size() - begin));
      if (std::ranges::find(names, name) == names.end())
        return invalid(where, fmt::format("names the part {}, which is not here: its rank wrote on another node; save "
                                          "to a shared file system and `weft import` it",
                                          printable(name)));
    }
    return {};
  }

  static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  const int root_;
  const std::function<bool()>& pause_;
  const std::chrono::milliseconds patience_;
  const std::size_t files_max_;
  const Clock::time_point begin_ = Clock::now();
  std::size_t files_ = 0;
};

}  // namespace

Result<std::optional<DraftFacts>> check_draft(int content, const std::function<bool()>& pause, std::size_t files_max) {
  ::unlinkat(content, kDraftErrorFile, 0);
  ::unlinkat(content, kDraftPublishedFile, 0);
  WEFT_CHECK(Walk(content, pause, kPatience, files_max).look(content, "", 0));
  return read_draft_facts(content);
}

Status check_not_written(int content, bool waits) {
  const std::function<bool()> always = [] { return true; };
  const auto patience = waits ? kShortPatience : std::chrono::milliseconds(0);
  const Status looked = Walk(content, always, patience, limits::kFilesPerVersionMax).look(content, "", 0);
  return looked.ok() || looked.error().code != Errc::busy ? Status{} : looked;
}

int refuse(int content, const Error& error) {
  log_info("a draft is not published: {}", error.message);
  static_cast<void>(leave_note(content, kDraftErrorFile, 0600, error.message + "\n"));
  return -errno_of(error.code);
}

}  // namespace weft
