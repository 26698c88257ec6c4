#include "fuse/drafts/publish_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/json.h"
#include "base/limits.h"

namespace weft {
namespace {

constexpr std::size_t kAnswerBytesMax = 1U << 20U;
constexpr mode_t kPackMode = 0644;  // as give_to_owner() in os/file_ops.h sets it
constexpr int kToDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

// Gives a file back to the user if an import has turned it into a pack: import gives packs to the store's owner and
// makes them readable to all. Files with more than `own_names` names may be packs of a version and stay. So do files of
// another owner or mode, which no import has changed.
void give_back(const Fd& file, const UserIds& user, uid_t owner_of_packs, nlink_t own_names) {
  struct stat st {};
  if (!file.valid() || ::fstat(file.get(), &st) != 0 || st.st_uid != owner_of_packs) return;
  if (!S_ISREG(st.st_mode) || (st.st_mode & 07777U) != kPackMode || st.st_nlink > own_names) return;
  static_cast<void>(::fchownat(file.get(), "", user.uid, user.gid, AT_EMPTY_PATH));
}

void give_back_below(int directory, const PublishOrder& order, uid_t owner_of_packs, unsigned depth) {
  if (depth > limits::kPathComponentsMax) return;  // deeper than any import reads
  const auto names = list_directory(Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), order.name);
  if (!names.ok()) return;
  const nlink_t own_names = order.stays.ino != 0 ? 2 : 1;
  for (const std::string& name : *names) {
    const Fd inner(::openat(directory, name.c_str(), kToDirectory));
    const Fd file(inner.valid() ? -1 : ::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (inner.valid())
      give_back_below(inner.get(), order, owner_of_packs, depth + 1);
    else
      give_back(file, order.user, owner_of_packs, own_names);
  }
}

}  // namespace

std::string folder_name(std::uint64_t request, const std::string& mount) {
  return fmt::format("{:016x}{}", request, mount);
}

int write_text(int folder, const char* name, const std::string& text) {
  const Fd file(::openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return -errno;
  return write_exact(file.get(), 0, std::as_bytes(std::span(text)), name).ok() ? 0 : -EIO;
}

Fd leave_note(int directory, const char* name, mode_t mode, const std::string& text) {
  ::unlinkat(directory, name, 0);
  Fd file(::openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file.valid() || !write_exact(file.get(), 0, std::as_bytes(std::span(text)), name).ok()) return {};
  struct stat st {};
  if (::geteuid() == 0 && ::fstat(directory, &st) == 0) static_cast<void>(::fchown(file.get(), st.st_uid, st.st_gid));
  return file;
}

Result<std::string> read_text(int folder, const char* name) {
  const Fd file(::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return sys_error(errno, name);
  WEFT_TRY(const struct stat st, stat_fd(file.get(), name));
  WEFT_TRY(const auto bytes, read_whole(file.get(), st, kAnswerBytesMax, name));
  return std::string(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::optional<JsonValue> said_in(int folder) {
  const auto text = read_text(folder, kAnswer);
  if (!text.ok()) return std::nullopt;
  auto json = JsonValue::parse(*text);
  return json.ok() ? std::optional(std::move(*json)) : std::nullopt;
}

bool is_published(int folder) {
  const auto said = said_in(folder);
  return said && said->find("version") != nullptr;
}

std::string encode(const PublishOrder& order) {
  JsonWriter json;
  json.begin_object().member("dir", std::uint64_t{order.dir}).member("name", order.name);
  json.member("uid", std::uint64_t{order.user.uid})
      .member("gid", std::uint64_t{order.user.gid})
      .member("model", order.model)
      .member("file", order.file)
      .member("stays", std::uint64_t{order.stays.ino})
      .member("written_ns", order.stays.written_ns)
      .end_object();
  return json.take();
}

Result<PublishOrder> decode(const std::string& text) {
  WEFT_TRY(const JsonValue json, JsonValue::parse(text));
  PublishOrder order;
  WEFT_TRY(order.dir, json.number("dir"));
  WEFT_TRY(order.name, json.text("name"));
  WEFT_TRY(order.model, json.text("model"));
  WEFT_TRY(order.file, json.flag("file"));
  WEFT_TRY(order.stays.ino, json.number("stays"));
  WEFT_TRY(order.stays.written_ns, json.number("written_ns"));
  WEFT_TRY(const std::uint64_t uid, json.number("uid"));
  WEFT_TRY(const std::uint64_t gid, json.number("gid"));
  order.user.uid = static_cast<uid_t>(uid);
  order.user.gid = static_cast<gid_t>(gid);
  // A draft that stays is identified by its number.
  const bool is_name =
      !order.name.empty() && order.name != "." && order.name != ".." && order.name.find('/') == std::string::npos;
  if (order.stays.ino == 0 && !is_name)
    return Error{Errc::invalid, "an order of a publish: expected the name of a file"};
  return order;
}

Result<PublishOrder> order_in(int folder) {
  struct stat st {};
  if (::fstatat(folder, kOrder, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != ::geteuid())
    return Error{Errc::permission, "an order of a publish: it is another user's"};
  WEFT_TRY(const std::string text, read_text(folder, kOrder));
  return decode(text);
}

void give_back(int directory, const PublishOrder& order, uid_t owner_of_packs) {
  if (::geteuid() == 0) give_back_below(directory, order, owner_of_packs, 0);
}

int PublishFolder::open(int publishing) {
  fd = Fd(::openat(publishing, name.c_str(), kToDirectory));
  if (!fd.valid()) return -errno;
  held = Fd(::openat(fd.get(), kHeld, kToDirectory));
  lock = Fd(::openat(fd.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  return lock.valid() ? 0 : -errno;
}

int PublishFolder::make_held(const UserIds& user) {
  if (::mkdirat(fd.get(), kHeld, 0700) != 0 && errno != EEXIST) return -errno;
  held = Fd(::openat(fd.get(), kHeld, kToDirectory));
  if (!held.valid()) return -errno;
  return ::geteuid() != 0 || ::fchown(held.get(), user.uid, user.gid) == 0 ? 0 : -errno;
}

int PublishFolder::open_content(Fd& content) const {
  content = Fd(::openat(held.get(), kContent, kToDirectory));
  return content.valid() ? 0 : -errno;
}

bool PublishFolder::holds(const PublishOrder& order) const {
  Fd content;
  if (open_content(content) != 0) return false;
  return !order.file || ::faccessat(content.get(), order.name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// A user may stop an import by a signal. The draft's directory stays locked until the publish ends, so a stopped import
// is killed.
bool PublishFolder::ended() const {
  int status = 0;
  const pid_t changed = child > 0 ? ::waitpid(child, &status, WNOHANG | WUNTRACED) : -1;
  const bool is_stopped = changed > 0 && WIFSTOPPED(status);
  if (is_stopped) ::kill(child, SIGKILL);
  if (changed == 0 || is_stopped) return false;
  return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace weft
