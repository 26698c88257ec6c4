#include "fuse/drafts/draft_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "fuse/kernel/errors.h"
#include "os/sys.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{1000}, kPause{5};

Error invalid(const std::string& path, std::string_view what) {
  return {Errc::invalid, fmt::format("{}: {}", printable(path), what)};
}

class Walk {
 public:
  Walk(int root, const std::function<bool()>& pause) : root_(root), pause_(pause) {}

  Status look(int directory, const std::string& below, unsigned depth) {
    if (depth > limits::kPathComponentsMax) return invalid(below, "expected fewer directories inside one another");
    WEFT_TRY(const auto names, list_directory(Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), below));
    for (const std::string& name : names) WEFT_CHECK(look_at(directory, name, below, depth));
    return check_distributed(directory, names, below);
  }

 private:
  Status look_at(int directory, const std::string& name, const std::string& below, unsigned depth) {
    const std::string path = below.empty() ? name : below + "/" + name;
    if (++files_ > limits::kFilesPerVersionMax)
      return invalid(path, fmt::format("expected at most {} files in a version", limits::kFilesPerVersionMax));
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

  // A link within the draft is followed; this process may read what the user may not.
  Status look_at_link(const std::string& path) const {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const Fd target(static_cast<int>(::syscall(SYS_openat2, root_, path.c_str(), &how, sizeof how)));
    struct stat st {};
    if (!target.valid() || ::fstat(target.get(), &st) != 0)
      return invalid(path, "expected a link to a file of the draft, got one that leads elsewhere or nowhere");
    if (!S_ISREG(st.st_mode)) return invalid(path, "expected a link to a file, got one to something else");
    return {};
  }

  Status wait_for_writers(int fd, const std::string& path) {
    while (!not_written(fd)) {
      if (Clock::now() - begin_ > kPatience)
        return Error{Errc::busy, fmt::format("{}: somebody has it open for writing, or mapped; close it and rename "
                                             "again",
                                             printable(path))};
      if (!pause_()) return Error{Errc::cancelled, "interrupted"};
      std::this_thread::sleep_for(kPause);
    }
    return {};
  }

  // The ranks of a distributed checkpoint that ran on other nodes wrote into the new/ of their own.
  static Status check_distributed(int directory, const std::vector<std::string>& names, const std::string& below) {
    const auto is_part = [](const std::string& name) { return name.ends_with(".distcp"); };
    const bool parts = std::ranges::any_of(names, is_part);
    const bool whole = std::ranges::find(names, ".metadata") != names.end();
    const std::string where = below.empty() ? "." : below;
    if (parts && !whole)
      return invalid(where,
                     "a distributed checkpoint without .metadata: its other ranks wrote on other nodes; save "
                     "to a shared file system and `weft import` it");
    return whole ? check_parts(directory, names, where) : Status{};
  }

  static Status check_parts(int directory, const std::vector<std::string>& names, const std::string& where) {
    const Fd file(::openat(directory, ".metadata", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return sys_error(errno, where + "/.metadata");
    WEFT_TRY(const struct stat st, stat_fd(file.get(), where));
    WEFT_TRY(const auto bytes, read_whole(file.get(), st, limits::kCheckpointMetadataMax, where + "/.metadata"));
    const std::string_view text = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    constexpr std::string_view kSuffix = ".distcp";
    for (std::size_t at = text.find(kSuffix); at != text.npos; at = text.find(kSuffix, at + 1)) {
      std::size_t begin = at;
      while (begin > 0 && is_name_byte(text[begin - 1])) --begin;
      const std::string name(text.substr(begin, at + kSuffix.size() - begin));
      if (std::ranges::find(names, name) == names.end())
        return invalid(where, fmt::format("a distributed checkpoint whose part {} is not here: its rank wrote on "
                                          "another node; save to a shared file system and `weft import` it",
                                          printable(name)));
    }
    return {};
  }

  static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  const int root_;
  const std::function<bool()>& pause_;
  const Clock::time_point begin_ = Clock::now();
  std::size_t files_ = 0;
};

Status read_texts(const JsonValue& json, std::string_view name, std::vector<std::string>& out) {
  const JsonValue* value = json.find(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->array() == nullptr) return unexpected(name, "a list of texts", value);
  for (const JsonValue& item : *value->array()) {
    if (item.text() == nullptr) return unexpected(name, "a list of texts", &item);
    out.push_back(*item.text());
  }
  return {};
}

Status read_text(const JsonValue& json, std::string_view name, std::string& out) {
  const JsonValue* value = json.find(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->text() == nullptr) return unexpected(name, kJsonText, value);
  out = *value->text();
  return {};
}

Status read_metrics(const JsonValue& json, std::vector<std::pair<std::string, std::string>>& out) {
  const JsonValue* value = json.find("metrics");
  if (value == nullptr || value->is_null()) return {};
  if (value->object() == nullptr) return unexpected("metrics", "an object of figures and texts", value);
  for (const auto& [name, figure] : *value->object()) {
    if (figure.is_object() || figure.array() != nullptr || figure.is_null())
      return unexpected("metrics." + name, "a figure or a text", &figure);
    JsonWriter text;
    write_json(text, figure);
    out.emplace_back(name, figure.text() != nullptr ? *figure.text() : text.take());
  }
  return {};
}

constexpr std::string_view kMembers[] = {"message", "metrics", "tags", "parents", "inherit", "durability"};

}  // namespace

Result<DraftFacts> parse_draft_facts(const std::string& text) {
  WEFT_TRY(const JsonValue json, JsonValue::parse(text));
  if (!json.is_object()) return unexpected("the file", "an object", &json);
  for (const auto& [name, value] : *json.object())
    if (std::ranges::find(kMembers, name) == std::end(kMembers))
      return Error{Errc::invalid, fmt::format("expected message, metrics, tags, parents, inherit or durability, got "
                                              "\"{}\"",
                                              printable(name))};
  DraftFacts facts;
  WEFT_CHECK(read_text(json, "message", facts.message));
  WEFT_CHECK(read_text(json, "inherit", facts.inherit));
  WEFT_CHECK(read_text(json, "durability", facts.durability));
  WEFT_CHECK(read_texts(json, "tags", facts.tags));
  WEFT_CHECK(read_texts(json, "parents", facts.parents));
  WEFT_CHECK(read_metrics(json, facts.metrics));
  return facts;
}

Result<DraftFacts> check_draft(int content, const std::function<bool()>& pause) {
  ::unlinkat(content, kDraftErrorFile, 0);
  WEFT_CHECK(Walk(content, pause).look(content, "", 0));
  const Fd file(::openat(content, kDraftFactsFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return DraftFacts();
  WEFT_TRY(const struct stat st, stat_fd(file.get(), kDraftFactsFile));
  if (static_cast<std::uint64_t>(st.st_size) > limits::kDraftFactsMax)
    return invalid(kDraftFactsFile,
                   fmt::format("expected at most {} bytes, got {}", limits::kDraftFactsMax, st.st_size));
  WEFT_TRY(const auto bytes, read_whole(file.get(), st, limits::kDraftFactsMax, kDraftFactsFile));
  auto facts =
      parse_draft_facts(std::string(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  if (!facts.ok()) return invalid(kDraftFactsFile, facts.error().message);
  return facts;
}

int refuse(int content, const Error& error) {
  log_info("a draft is not published: {}", error.message);
  const Fd file(::openat(content, kDraftErrorFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  const std::string text = error.message + "\n";
  if (file.valid()) static_cast<void>(write_exact(file.get(), 0, std::as_bytes(std::span(text)), kDraftErrorFile));
  return -errno_of(error.code);
}

}  // namespace weft
