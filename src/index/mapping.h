// One open LMDB environment. Only env.cc, mapping.cc and txn.cc include this file.
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

// The only translation of LMDB's codes into errors.
Error lmdb_error(int code, std::string_view path, std::string_view what);

// Calls LMDB inside a fault guard. LMDB trusts its file, so a damaged page may cause a fault or a failed assertion: the
// result is then MDB_CORRUPTED. The interrupted call leaves LMDB's state undefined, so end the transaction by
// Mapping::spoil(), not by LMDB.
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
  // Opens the file and all tables.
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
  std::uint64_t serial() const { return serial_; }  // unique in this process; a new file restarts transaction numbers
  bool is_of(const struct stat& st) const { return st.st_dev == device_ && st.st_ino == inode_; }

  // Makes the next transaction open a new Mapping: after a failed commit LMDB refuses all writes, and after a fault its
  // state is undefined. `leak` keeps the memory that a broken transaction may point into.
  void spoil(bool leak) const;
  bool spoiled() const { return spoiled_; }

  // Begins a read transaction and locks its state. Sets `code` to LMDB's code, for example MDB_MAP_RESIZED.
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
