#include "catalog/cluster_files.h"

#include <fcntl.h>

#include <fmt/core.h>

#include "base/limits.h"
#include "diskformat/rows.h"
#include "os/file_lock.h"

namespace weft {
namespace {

constexpr std::uint64_t kClusterMax = 64U << 10U;

SafePath cluster_path(const SafePath& store_path) {
  return store_path / "cluster";
}
SafePath origin_path(const SafePath& store_path) {
  return store_path / "origin";
}
SafePath lock_path(const SafePath& store_path) {
  return store_path / "daemon.lock";
}

// Each file has its own temporary: two of them may be written at the same time.
Status write_whole(const SafePath& store_path, const std::string& name, std::span<const std::byte> record) {
  return replace_file(store_path / name, store_path / ("tmp/" + name), record);
}

}  // namespace

Result<std::optional<ClusterIdentity>> read_cluster(const SafePath& store_path) {
  const SafePath path = cluster_path(store_path);
  WEFT_TRY(auto bytes, if_there(read_file(path, kClusterMax)));
  if (!bytes) return std::optional<ClusterIdentity>();
  WEFT_TRY(std::vector<std::byte> payload, open_record(RecordKind::cluster, *bytes, path));
  WEFT_TRY(ClusterIdentity identity, decode_row<ClusterIdentity>(payload, path));
  return std::optional(std::move(identity));
}

Status write_cluster(const SafePath& store_path, const ClusterIdentity& identity) {
  return write_whole(store_path, "cluster", seal_record(RecordKind::cluster, encode_row(identity)));
}

Result<std::string> read_origin(const SafePath& store_path) {
  const SafePath path = origin_path(store_path);
  WEFT_TRY(const auto bytes, if_there(read_file(path, limits::kOriginIdentityMax)));
  if (!bytes) return std::string();
  WEFT_TRY(const auto payload, open_record(RecordKind::origin, *bytes, path));
  WEFT_TRY(OriginInfo info, decode_row<OriginInfo>(payload, path));
  return std::move(info.uuid);
}

Status write_origin(const SafePath& store_path, const std::string& uuid) {
  OriginInfo info;
  info.uuid = uuid;
  info.created_ns = now_ns();
  return write_whole(store_path, "origin", seal_record(RecordKind::origin, encode_row(info)));
}

Result<Fd> lock_against_daemon(const SafePath& store_path) {
  const SafePath path = lock_path(store_path);
  WEFT_TRY(Fd fd, open_file(path, O_RDWR | O_CREAT, 0600));
  Status status = try_lock(fd.get(), LockKind::shared, path);
  if (status.ok()) return fd;
  if (status.error().code != Errc::busy) return std::move(status).error();
  const std::string holder = lock_holder(fd.get());
  return Error{Errc::busy, fmt::format("{}: a daemon runs on it{}: only the daemon writes to it", store_path,
                                       holder.empty() ? "" : ", " + holder)};
}

Result<Fd> lock_as_daemon(const SafePath& store_path, const Patience& patience) {
  const SafePath path = lock_path(store_path);
  WEFT_TRY(Fd fd, open_file(path, O_RDWR | O_CREAT, 0600));
  WEFT_CHECK(wait_for_lock(fd.get(), LockKind::exclusive, patience, path));
  return fd;
}

Status remove_cluster_files(const SafePath& store_path) {
  WEFT_CHECK(remove_file(cluster_path(store_path)));
  WEFT_CHECK(remove_file(origin_path(store_path)));
  return remove_file(lock_path(store_path));
}

}  // namespace weft
