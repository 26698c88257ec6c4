#include "drafts/publish_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <span>

#include "base/json_fields.h"
#include "base/limits.h"
#include "drafts/draft_facts.h"
#include "os/entries.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kAnswerBytesMax = 1U << 20U;

}  // namespace

// The members of the file `order`.
void fields(JsonFields& f, PublishOrder& m) {
  f("request", m.request)("thread", m.thread)("answered", m.answered);
  f("dir", m.dir)("name", m.name)("to", m.to)("tag", m.tag)("file", m.file);
  f("uid", m.user.uid)("gid", m.user.gid)("model", m.model);
  f("stays", m.stays.ino)("written_ns", m.stays.written_ns);
  // A draft that stays is identified by its number.
  const bool is_name = !m.name.empty() && m.name != "." && m.name != ".." && m.name.find('/') == std::string::npos;
  if (m.stays.ino == 0 && !is_name) f.refuse("an order of a publish: expected the name of a file");
}

std::string folder_name(std::uint64_t request, const std::string& mount) {
  return fmt::format("{:016x}{}", request, mount);
}

Status write_order(int folder, const PublishOrder& order) {
  WEFT_TRY(const Fd file, open_at(folder, kOrder, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  const std::string text = encode_fields(order);
  const Status written = write_exact(file.get(), 0, std::as_bytes(std::span(text)), kOrder);
  return written.ok() ? written : Error{Errc::io, written.error().message};
}

Result<PublishOrder> order_in(int folder) {
  const auto st = stat_at(folder, kOrder);
  if (st.ok() && st->st_uid != own_user())
    return Error{Errc::permission, "an order of a publish: it is another user's"};
  WEFT_TRY(const std::string text, read_text_at(folder, kOrder, kAnswerBytesMax));
  WEFT_TRY(const JsonValue json, JsonValue::parse(text));
  return decode_fields<PublishOrder>(json);
}

Result<Fd> leave_note(int directory, const char* name, mode_t mode, const std::string& text) {
  WEFT_TRY(Fd file, make_nameless_file(directory, mode));
  WEFT_CHECK(write_exact(file.get(), 0, std::as_bytes(std::span(text)), name));
  give_as(file.get(), directory);
  WEFT_CHECK(put_file(file.get(), directory, name));
  return file;
}

std::optional<JsonValue> said_in(int folder) {
  const auto text = read_text_at(folder, kAnswer, kAnswerBytesMax);
  if (!text.ok()) return std::nullopt;
  auto json = JsonValue::parse(*text);
  return json.ok() ? std::optional(std::move(*json)) : std::nullopt;
}

bool is_published(int folder) {
  const auto said = said_in(folder);
  return said && said->find("version") != nullptr;
}

Status PublishFolder::open(int publishing) {
  WEFT_TRY(fd, open_directory_at(publishing, name));
  if (auto there = open_directory_at(fd.get(), kHeld); there.ok()) held = std::move(there).value();
  WEFT_TRY(lock, open_at(fd.get(), kLock, O_RDWR | O_CREAT, 0600));
  WEFT_TRY(servers, open_at(fd.get(), kServers, O_RDWR | O_CREAT, 0600));
  return {};
}

Status PublishFolder::make_held(const UserIds& user) {
  WEFT_CHECK(ensure_directory_at(fd.get(), kHeld, 0700));
  WEFT_TRY(held, open_directory_at(fd.get(), kHeld));
  return own_user() != 0 ? Status{} : change_owner(held.get(), user.uid, user.gid);
}

Result<Fd> PublishFolder::open_content() const {
  return open_directory_at(held.get(), kContent);
}

void PublishFolder::restore_facts(int content) const {
  static_cast<void>(rename_at(fd.get(), kDraftFactsFile, content, kDraftFactsFile));
}

bool PublishFolder::holds(const PublishOrder& order) const {
  const auto content = open_content();
  return content.ok() && (!order.file || has_entry(content->get(), order.name));
}

// The guard of an import holds the lock while the import runs (os/programs.h). The user's processes never have it.
bool PublishFolder::ended() const {
  if (child > 0 && is_running(child)) return false;
  const Status locked = lock_fd(lock.get(), LockKind::exclusive, LockWait::no, name);
  return locked.ok() || locked.error().code != Errc::busy;
}

}  // namespace weft
