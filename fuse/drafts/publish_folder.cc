#include "fuse/drafts/publish_folder.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include "base/json.h"

namespace weft {
namespace {

constexpr std::size_t kAnswerBytesMax = 1U << 20U;

}  // namespace

std::string folder_name(std::uint64_t request) {
  return fmt::format("{:016x}", request);
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
  // A draft that stays is found by its number.
  const bool is_name =
      !order.name.empty() && order.name != "." && order.name != ".." && order.name.find('/') == std::string::npos;
  if (order.stays.ino == 0 && !is_name)
    return Error{Errc::invalid, "an order of a publish: expected the name of a file"};
  return order;
}

// The folder is the user's, who may have written another order.
Result<PublishOrder> order_in(int folder) {
  WEFT_TRY(const std::string text, read_text(folder, kOrder));
  WEFT_TRY(PublishOrder order, decode(text));
  WEFT_TRY(const struct stat st, stat_fd(folder, kOrder));
  if (st.st_uid != order.user.uid) return Error{Errc::permission, "an order of a publish names another user"};
  return order;
}

void give_back(int directory, const PublishOrder& order) {
  const nlink_t own_links = order.stays.ino != 0 ? 2 : 1;  // a file with more may be a pack of a version
  const auto names = list_directory(Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), order.name);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    struct stat st {};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(st.st_mode)) {
      const Fd inner(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner.valid()) give_back(inner.get(), order);
    } else if (st.st_uid != order.user.uid && (!S_ISREG(st.st_mode) || st.st_nlink <= own_links)) {
      static_cast<void>(::fchownat(directory, name.c_str(), order.user.uid, order.user.gid, AT_SYMLINK_NOFOLLOW));
    }
  }
}

}  // namespace weft
