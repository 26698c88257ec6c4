#include "index/env.h"

#include <fcntl.h>

#include <algorithm>

#include <fmt/core.h>

#include "index/mapping.h"
#include "index/queue.h"
#include "os/file_lock.h"

namespace weft {
namespace {

SafePath data_path(const SafePath& dir) {
  return dir / "data.mdb";
}

Status create_empty(const SafePath& path, mode_t mode) {
  auto fd = open_file(path, O_RDONLY | O_CREAT, mode);
  return fd.ok() ? Status{} : Status{std::move(fd).error()};
}

// Callers treat a missing or incomplete index as damage.
Error not_open(Error error) {
  if (error.code != Errc::not_found) return error;
  return Error{Errc::corrupt, error.message + "; run `weft fsck --rebuild`"};
}

}  // namespace

// Any user who can open a file can lock it, shared, and so block a writer that needs it exclusively. So only the owner
// can open the files that writers lock exclusively for long. The group can open those that readers lock.
Status Env::create_locks(const SafePath& dir) {
  for (const char* name : {"open", "readers"}) WEFT_CHECK(create_empty(dir / name, 0640));
  for (const char* name : {"gc", "queue", "writer"}) WEFT_CHECK(create_empty(dir / name, 0600));
  return {};
}

Status Env::create(const SafePath& dir) {
  WEFT_CHECK(create_locks(dir));
  return Mapping::create(data_path(dir));
}

Result<std::unique_ptr<Env>> Env::open(const SafePath& dir, const EnvOptions& options) {
  auto generations = Generations::open(dir, options.write, options.reader_wait_ms, options.patience);
  if (!generations.ok()) return not_open(std::move(generations).error());
  std::unique_ptr<Env> env(new Env(dir.held(), options, std::move(generations).value()));
  std::lock_guard lock(env->mutex_);
  WEFT_CHECK(env->remap(options.map_bytes));
  return env;
}

Result<std::shared_ptr<const Mapping>> Env::remap(std::uint64_t map_bytes) {
  auto mapping = Mapping::open(data_path(dir_), options_, map_bytes, *generations_);
  if (!mapping.ok()) return not_open(std::move(mapping).error());
  mapping_ = *mapping;
  return mapping;
}

Result<std::shared_ptr<const Mapping>> Env::current() {
  std::lock_guard lock(mutex_);
  const auto st = stat_file(data_path(dir_));
  if (!st.ok()) return not_open(st.error());
  if (mapping_->is_of(*st) && !mapping_->spoiled()) return mapping_;
  return remap(std::max(options_.map_bytes, mapping_->map_bytes()));
}

// Another process made the file larger than this map: maps it again, with space to grow.
Result<std::shared_ptr<const Mapping>> Env::enlarge(const std::shared_ptr<const Mapping>& small,
                                                    std::uint64_t map_bytes) {
  std::lock_guard lock(mutex_);
  if (mapping_ != small) return mapping_;
  return remap(map_bytes);
}

Result<Txn> Env::read() {
  WEFT_TRY(std::shared_ptr<const Mapping> mapping, current());
  for (;;) {
    int code = 0;
    auto handle = mapping->begin_read(*generations_, code);
    if (handle.ok()) return Txn(std::move(mapping), handle->txn, std::move(handle->hold), false);
    if (code != MDB_MAP_RESIZED) return std::move(handle).error();
    WEFT_TRY(mapping, enlarge(mapping, mapping->map_bytes() * 2));
  }
}

Result<IndexState> Env::state() {
  WEFT_TRY(const std::shared_ptr<const Mapping> mapping, current());
  return IndexState{mapping->serial(), mapping->last_transaction()};
}

Result<WriterLock> Env::lock_writer(const SafePath& dir, const Patience& patience) {
  const SafePath path = dir / "writer";
  auto fd = open_file(path, O_RDWR);
  const bool fixed = !fd.ok() && fd.error().code == Errc::read_only;  // fsck of a read-only file system
  if (fixed) fd = open_file(path, O_RDONLY);
  if (!fd.ok()) return not_open(std::move(fd).error());
  WEFT_CHECK(fixed ? wait_for_lock(fd->get(), LockKind::shared, patience, path)
                   : wait_for_writer(dir, fd->get(), patience));
  return WriterLock(std::move(fd).value());
}

Result<WriterLock> Env::lock_writer() {
  if (!options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", dir_)};
  return lock_writer(dir_, options_.patience);
}

Result<Txn> Env::write(const WriterLock& /*lock*/) {
  WEFT_TRY(std::shared_ptr<const Mapping> mapping, current());
  for (;;) {
    WEFT_CHECK(generations_->drain(mapping->last_transaction() + 1));
    MDB_txn* txn = nullptr;
    int code = call_lmdb([&] { return mdb_txn_begin(mapping->env(), nullptr, 0, &txn); });
    if (code == 0) return Txn(std::move(mapping), txn, {}, true);
    if (code != MDB_MAP_RESIZED) return lmdb_error(code, mapping->path(), "write");
    WEFT_TRY(mapping, enlarge(mapping, mapping->map_bytes() * 2));
  }
}

Status Env::grow(const WriterLock& /*lock*/) {
  std::lock_guard lock(mutex_);
  WEFT_CHECK(remap(mapping_->map_bytes() * 2));
  return {};
}

Status Env::reopen() {
  std::lock_guard lock(mutex_);
  WEFT_CHECK(remap(mapping_->map_bytes()));
  return {};
}

void Env::unload_pages() {
  std::lock_guard lock(mutex_);
  mapping_->unload_pages();
}

Status Env::sync() {
  WEFT_TRY(std::shared_ptr<const Mapping> mapping, current());
  int code = mdb_env_sync(mapping->env(), 1);
  return code == 0 ? Status{} : Status{lmdb_error(code, mapping->path(), "sync")};
}

Status Env::write(const WriterLock& lock, const std::function<Status(Txn&)>& body) {
  for (;;) {
    WEFT_TRY(Txn txn, write(lock));
    Status status = body(txn);
    if (status.ok()) status = txn.commit();
    if (status.ok() || !txn.map_full()) return status;
    txn.abort();
    WEFT_CHECK(grow(lock));
  }
}

}  // namespace weft
