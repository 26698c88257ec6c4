#include "registry/mirror_mark.h"

#include <fcntl.h>

#include "base/sha256.h"
#include "os/entries.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

constexpr std::uint64_t kFileBytesMax = 65'536;

// Returns the key at a revision (0: the current one); nothing if it did not exist.
Result<std::optional<etcd::KeyValue>> at_revision(etcd::Client& client, const std::string& key,
                                                  std::uint64_t revision) {
  WEFT_TRY(etcd::RangeAnswer answer, client.range({{key, {}}, 0, revision, false, false}));
  if (answer.items.empty()) return std::optional<etcd::KeyValue>();
  return std::optional<etcd::KeyValue>(std::move(answer.items[0]));
}

bool is_put(const MirrorMark& mark, const std::optional<etcd::KeyValue>& item) {
  return item && item->mod_revision == mark.revision && sha256(item->value) == *mark.value;
}

Result<bool> was_put(etcd::Client& client, const MirrorMark& mark) {
  WEFT_TRY(std::optional<etcd::KeyValue> now, at_revision(client, mark.key, 0));
  if (is_put(mark, now)) return true;
  WEFT_TRY(std::optional<etcd::KeyValue> then, at_revision(client, mark.key, mark.revision));
  return is_put(mark, then);
}

Result<bool> was_deleted(etcd::Client& client, const MirrorMark& mark) {
  WEFT_TRY(std::optional<etcd::KeyValue> before, at_revision(client, mark.key, mark.revision - 1));
  WEFT_TRY(std::optional<etcd::KeyValue> then, at_revision(client, mark.key, mark.revision));
  return before && !then;
}

}  // namespace

void keep_newest(std::optional<MirrorMark>& mark, const etcd::Event& event) {
  const etcd::KeyValue& item = event.item;
  if (mark && item.mod_revision < mark->revision) return;
  if (mark && item.mod_revision == mark->revision && (event.deleted || mark->value)) return;
  std::optional<Digest> value;
  if (!event.deleted) value = sha256(item.value);
  mark = MirrorMark{0, 0, item.mod_revision, item.key, value};
}

Result<bool> is_of(etcd::Client& client, const MirrorMark& mark) {
  if (mark.revision < 2) return false;
  auto is = mark.value ? was_put(client, mark) : was_deleted(client, mark);
  if (!is.ok() && is.error().code == Errc::changed) return false;
  return is;
}

std::optional<MirrorMark> MarkFile::read() const {
  auto bytes = read_file(path_, kFileBytesMax);
  if (!bytes.ok()) return {};
  auto mark = open_mark(*bytes);
  return mark.ok() ? std::optional(std::move(mark).value()) : std::nullopt;
}

// Writes in place: a torn write does not verify.
Status MarkFile::write(const std::optional<MirrorMark>& mark) {
  if (!fd_.valid()) {
    WEFT_TRY(fd_, open_file(path_, O_WRONLY | O_CREAT));
  }
  const std::vector<std::byte> bytes = mark ? seal(*mark) : std::vector<std::byte>();
  WEFT_CHECK(write_exact(fd_.get(), 0, bytes, path_));
  return resize_file(fd_.get(), bytes.size(), path_);
}

}  // namespace weft
