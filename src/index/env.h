// LMDB as this store uses it: one environment of named tables, read and write transactions over byte strings, locks of
// our own (generation.h). Only mapping.h includes lmdb.h.
//
// Threads: an Env from any; a transaction from one at a time. Transactions outlive their Env.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diskformat/keys.h"
#include "index/generation.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/snapshot.h"

struct MDB_cursor;
struct MDB_txn;

namespace weft {

struct Entry {
  Bytes key, value;  // valid until the transaction ends or writes
};

// data.mdb as it is mapped now, with its tables open. Immutable; a larger or newer file gets another Mapping, and this
// one goes with its last transaction.
class Mapping;

class Txn;

// Ends before its transaction does, and does not outlive a move of it.
class Cursor {
 public:
  ~Cursor();
  Cursor(Cursor&& other) noexcept
      : cursor_(std::exchange(other.cursor_, nullptr)),
        txn_(other.txn_),
        table_(other.table_),
        last_(std::move(other.last_)) {}
  Cursor& operator=(Cursor&&) = delete;
  Result<std::optional<Entry>> seek(Bytes key);         // the first entry with this key or a later one
  Result<std::optional<Entry>> seek_exact(Bytes key);   // the first entry with this key
  Result<std::optional<Entry>> seek_before(Bytes key);  // the last entry with an earlier key
  // The first of the key's values that is not below `value`; tables that keep sets.
  Result<std::optional<Entry>> seek_value(Bytes key, Bytes value);
  Result<std::optional<Entry>> next();         // also from one value of a key to the next
  Result<std::optional<Entry>> next_of_key();  // the key's next value
  // The key's values from that at which the cursor stands on, as far as they lie on one page: one behind the other, and
  // it stands at the last of them then. Empty where the key has one value only.
  Result<Bytes> rest_of_page();
  Result<std::uint64_t> count_of_key();  // of its values, where the cursor stands on a key

 private:
  friend class Txn;
  Cursor(MDB_cursor* cursor, Txn* txn, Table table) : cursor_(cursor), txn_(txn), table_(table) {}
  Result<std::optional<Entry>> move(int operation, Bytes key);
  Result<std::optional<Entry>> step(int operation);  // forward, or it is damage: pages may lead in a circle
  MDB_cursor* cursor_;
  Txn* txn_;
  Table table_;
  std::pair<std::string, std::string> last_;  // key and, in a table of sorted values, value
};

// A transaction: one state of all tables. Destroyed, it is over; a write transaction without commit() leaves no trace.
class Txn {
 public:
  ~Txn();
  Txn(Txn&& other) noexcept;
  Txn& operator=(Txn&& other) = delete;

  std::uint64_t id() const { return id_; }
  IndexState state() const;
  const std::string& path() const;  // of data.mdb, for messages

  Result<std::optional<Bytes>> get(Table table, Bytes key);
  Result<Cursor> cursor(Table table);
  Result<std::uint64_t> count(Table table);  // entries

  // In a write transaction only. Tables of one value a key replace it; others keep a sorted set of values.
  Status put(Table table, Bytes key, Bytes value);
  Status erase(Table table, Bytes key);                     // with all its values; fine when it is not there
  Status erase_value(Table table, Bytes key, Bytes value);  // fine when it is not there
  Status commit();                                          // durable; the transaction is over, also when it fails
  // A crash of the machine may leave the state before it, until the next commit() or Env::sync().
  Status commit_lazily();
  void abort();
  // The map was too small for this transaction: Env::grow(), then do it all again.
  bool map_full() const { return map_full_; }

 private:
  friend class Cursor;
  friend class Env;
  Txn(std::shared_ptr<const Mapping> mapping, MDB_txn* txn, Generations::Hold hold, bool writes);
  template <class Call>
  int run(Call&& call);  // of LMDB, in a guard
  Error failed(int code, std::string_view what);
  Status end_commit(int code);
  std::shared_ptr<const Mapping> mapping_;
  Generations::Hold hold_;
  MDB_txn* txn_ = nullptr;
  std::uint64_t id_ = 0;
  bool writes_ = false;
  bool broken_ = false;  // a call met damage: LMDB's state of it is no more to be trusted
  bool map_full_ = false;
};

// Held by the one writer of an index; ends with the object.
class WriterLock {
 public:
  explicit WriterLock(Fd fd) : fd_(std::move(fd)) {}

 private:
  Fd fd_;
};

struct EnvOptions {
  bool write = false;
  bool sync = true;  // false: commits are durable only after sync()
  std::uint64_t map_bytes = 1ULL << 30U;
  std::uint64_t reader_wait_ms = 10'000;
  Patience patience = {};
};

class Env {
 public:
  // Makes the files of an empty index in the directory `dir`, which exists; leaves those that are there.
  static Status create(const SafePath& dir);
  static Status create_locks(const SafePath& dir);
  // Errc::corrupt when it does not open.
  static Result<std::unique_ptr<Env>> open(const SafePath& dir, const EnvOptions& options);

  Result<Txn> read();
  Result<IndexState> state();  // that read() would show
  // In the order in which they ask (queue.h). Waits, as all, no longer than options.patience.
  Result<WriterLock> lock_writer();
  static Result<WriterLock> lock_writer(const SafePath& dir, const Patience& patience);
  Result<bool> lock_alone() { return generations_->lock_alone(); }
  // Errc::busy: a reader did not end its transaction in time.
  Result<Txn> write(const WriterLock& lock);
  // Doubles the map. For the holder of the lock, without an open write transaction.
  Status grow(const WriterLock& lock);
  // Begins anew from the file, as the next transaction after a failed commit does by itself.
  Status reopen();
  Status sync();
  // A walk of a large index leaves its pages in this process's memory: they leave it, and stay in the page cache.
  void unload_pages();
  // body in a transaction, once more with a larger map as often as it takes; then commits.
  Status write(const WriterLock& lock, const std::function<Status(Txn&)>& body);

 private:
  Env(SafePath dir, const EnvOptions& options, std::shared_ptr<Generations> generations)
      : dir_(std::move(dir)), options_(options), generations_(std::move(generations)) {}
  Result<std::shared_ptr<const Mapping>> current();                       // maps anew when data.mdb was replaced
  Result<std::shared_ptr<const Mapping>> remap(std::uint64_t map_bytes);  // under mutex_
  Result<std::shared_ptr<const Mapping>> enlarge(const std::shared_ptr<const Mapping>& small, std::uint64_t map_bytes);

  const SafePath dir_;
  const EnvOptions options_;
  const std::shared_ptr<Generations> generations_;
  std::mutex mutex_;
  std::shared_ptr<const Mapping> mapping_;  // guarded by mutex_
};

}  // namespace weft
