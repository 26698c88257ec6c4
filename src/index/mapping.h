// One opened environment of LMDB. Included by env.cc, mapping.cc and txn.cc only.
#pragma once

#include <lmdb.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "index/env.h"
#include "index/generation.h"
#include "os/fault_guard.h"
#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

// The one place where LMDB's codes become errors.
Error lmdb_error(int code, std::string_view path, std::string_view what);

// LMDB trusts its file: what a damaged page makes of it, a fault or a failed assertion, comes back as MDB_CORRUPTED.
// What it was doing is left as it is: end the transaction by Mapping::spoil(), not by LMDB.
template <class Call>
int call_lmdb(Call&& call) {
  int code = 0;
  return survive_faults([&] { code = call(); }) ? code : MDB_CORRUPTED;
}

struct ReadHandle {
  MDB_txn* txn = nullptr;
  Generations::Hold hold;
};

class Mapping {
 public:
  // Opens all tables.
  static Result<std::shared_ptr<const Mapping>> open(const SafePath& path, const EnvOptions& options,
                                                     std::uint64_t map_bytes, Generations& generations);
  static Status create(const SafePath& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  MDB_env* env() const { return env_; }
  MDB_dbi table(Table table) const { return tables_[static_cast<std::size_t>(table)]; }
  const std::string& path() const { return path_.str(); }
  std::uint64_t map_bytes() const;
  std::uint64_t last_transaction() const;
  void unload_pages() const;
  std::uint64_t serial() const { return serial_; }  // of this process's mappings; transactions begin anew in a new file
  bool is_of(const struct stat& st) const { return st.st_dev == device_ && st.st_ino == inode_; }

  // After a commit that failed LMDB refuses all further writes, and after a fault it can be trusted with nothing: the
  // next transaction begins with a new Mapping. `leak` keeps the memory that a broken transaction may point into.
  void spoil(bool leak) const;
  bool spoiled() const { return spoiled_; }

  // A read transaction under its lock. MDB_MAP_RESIZED comes back as code.
  Result<ReadHandle> begin_read(Generations& generations, int& code) const;

 private:
  explicit Mapping(SafePath path);
  Status open_env(const OpenedFile& file, unsigned flags, std::uint64_t map_bytes);
  Status open_tables(MDB_txn* txn, unsigned flags);

  const SafePath path_;
  const std::uint64_t serial_;
  MDB_env* env_ = nullptr;
  std::array<MDB_dbi, kTableCount> tables_{};
  mutable std::atomic<bool> spoiled_ = false;
  mutable std::atomic<bool> leaked_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace weft
