#include "registry/mirror_mark.h"

#include <fcntl.h>

#include "base/sha256.h"
#include "os/entries.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

constexpr std::uint64_t kFileBytesMax = 65'536;

}  // namespace

void keep_newest(std::optional<MirrorMark>& mark, const etcd::KeyValue& history) {
  if (mark && history.mod_revision <= mark->revision) return;
  mark = MirrorMark{0, 0, history.mod_revision, sha256(history.value)};
}

Result<bool> is_of(etcd::Client& client, const RegistryKeys& keys, const MirrorMark& mark) {
  if (mark.revision == 0) return false;
  for (const std::uint64_t at : {std::uint64_t{0}, mark.revision}) {  // now, and as it was
    const auto answer = client.range({{keys.history(), {}}, 0, at, false, false});
    if (!answer.ok() && answer.error().code == Errc::changed) return false;
    if (!answer.ok()) return answer.error();
    if (answer->items.empty() || answer->items[0].mod_revision < mark.revision) return false;
    if (answer->items[0].mod_revision == mark.revision) return sha256(answer->items[0].value) == mark.value;
  }
  return false;
}

MirrorMark MarkFile::read() const {
  auto bytes = read_file(path_, kFileBytesMax);
  if (!bytes.ok()) return {};
  auto mark = open_mark(*bytes);
  return mark.ok() ? std::move(mark).value() : MirrorMark{};
}

// Writes in place: a torn write does not verify.
Status MarkFile::write(const MirrorMark& mark) {
  if (!fd_.valid()) {
    WEFT_TRY(fd_, open_file(path_, O_WRONLY | O_CREAT));
  }
  const std::vector<std::byte> bytes = seal(mark);
  WEFT_CHECK(write_exact(fd_.get(), 0, bytes, path_));
  return resize_file(fd_.get(), bytes.size(), path_);
}

}  // namespace weft
