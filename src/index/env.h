// The store's use of LMDB: one environment with named tables, read and write transactions over byte strings, and locks
// of our own (generation.h). Only mapping.h includes lmdb.h.
//
// Threads: any thread may use an Env; one thread at a time uses a transaction. Transactions may outlive their Env.
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
#include "weft/store/snapshot.h"

struct MDB_cursor;
struct MDB_txn;

namespace weft {

struct Entry {
  Bytes key, value;  // valid until the transaction ends or writes
};

// A memory map of data.mdb with its tables open. Immutable: after data.mdb was replaced or has outgrown the map, new
// transactions use another Mapping. The old one is destroyed with its last transaction.
class Mapping;

class Txn;

// Must be destroyed before its transaction ends or is moved.
class Cursor {
 public:
  ~Cursor();
  Cursor(Cursor&& other) noexcept
      : cursor_(std::exchange(other.cursor_, nullptr)),
        txn_(other.txn_),
        table_(other.table_),
        last_(std::move(other.last_)) {}
  Cursor& operator=(Cursor&&) = delete;
  Result<std::optional<Entry>> seek(Bytes key);         // the first entry at or after this key
  Result<std::optional<Entry>> seek_exact(Bytes key);   // the first entry of exactly this key
  Result<std::optional<Entry>> seek_before(Bytes key);  // the last entry before this key
  // For tables that keep sets: the key's first value that is at or after `value`.
  Result<std::optional<Entry>> seek_value(Bytes key, Bytes value);
  Result<std::optional<Entry>> next();         // the next value of the key or the next key
  Result<std::optional<Entry>> next_of_key();  // the key's next value
  // Returns the key's values from the current one to the end of its page, concatenated. Moves the cursor to the last of
  // them. Empty if the key has one value only.
  Result<Bytes> rest_of_page();
  Result<std::uint64_t> count_of_key();  // values of the current key

 private:
  friend class Txn;
  Cursor(MDB_cursor* cursor, Txn* txn, Table table) : cursor_(cursor), txn_(txn), table_(table) {}
  Result<std::optional<Entry>> move(int operation, Bytes key);
  Result<std::optional<Entry>> step(int operation);  // Errc::corrupt if the key does not grow: pages may form a loop
  MDB_cursor* cursor_;
  Txn* txn_;
  Table table_;
  std::pair<std::string, std::string> last_;  // key and, in a table of sets, value
};

// A transaction: one state of all tables. The destructor ends it; a write transaction without commit() changes nothing.
class Txn {
 public:
  ~Txn();
  Txn(Txn&& other) noexcept;
  Txn& operator=(Txn&& other) = delete;

  std::uint64_t id() const { return id_; }
  IndexState state() const;
  const std::string& path() const;  // path of data.mdb, for messages

  Result<std::optional<Bytes>> get(Table table, Bytes key);
  Result<Cursor> cursor(Table table);
  Result<std::uint64_t> count(Table table);  // number of entries

  // Only in write transactions. put() replaces the value of a key; in tables that keep sets, it adds a value.
  Status put(Table table, Bytes key, Bytes value);
  Status erase(Table table, Bytes key);                     // erases all values of the key, if any
  Status erase_value(Table table, Bytes key, Bytes value);  // no effect if there is none
  Status commit();                                          // durable; ends the transaction, also on failure
  // Until the next commit() or Env::sync(), a crash of the machine may undo this commit.
  Status commit_lazily();
  void abort();
  // True if the map was too small for this transaction: call Env::grow() and repeat the transaction.
  bool map_full() const { return map_full_; }

 private:
  friend class Cursor;
  friend class Env;
  Txn(std::shared_ptr<const Mapping> mapping, MDB_txn* txn, Generations::Hold hold, bool writes);
  template <class Call>
  int run(Call&& call);  // calls LMDB inside a fault guard
  Error failed(int code, std::string_view what);
  Status end_commit(int code);
  std::shared_ptr<const Mapping> mapping_;
  Generations::Hold hold_;
  MDB_txn* txn_ = nullptr;
  std::uint64_t id_ = 0;
  bool writes_ = false;
  bool broken_ = false;  // a call found damage: LMDB's state of the transaction is unreliable
  bool map_full_ = false;
};

// The lock of the index's only writer. Released with the object.
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
  // Creates the files of an empty index in the existing directory `dir`. Keeps files that exist.
  static Status create(const SafePath& dir);
  static Status create_locks(const SafePath& dir);
  // Errc::corrupt: the index cannot be opened.
  static Result<std::unique_ptr<Env>> open(const SafePath& dir, const EnvOptions& options);

  Result<Txn> read();
  Result<IndexState> state();  // the state that read() would show
  // Waits for the writer lock, as long as the patience allows. Writers get it in the order of their requests (queue.h).
  Result<WriterLock> lock_writer();
  static Result<WriterLock> lock_writer(const SafePath& dir, const Patience& patience);
  Result<bool> lock_alone() { return generations_->lock_alone(); }
  // Errc::busy: a reader of an old state did not end its transaction in time.
  Result<Txn> write(const WriterLock& lock);
  // Doubles the map. The caller has no open write transaction.
  Status grow(const WriterLock& lock);
  // Opens the file again. After a failed commit the next transaction does so anyway.
  Status reopen();
  Status sync();
  // Drops the index pages from this process's memory, for example after a walk of a large index. They stay in the page
  // cache.
  void unload_pages();
  // Runs `body` in a transaction and commits. If the map is full, doubles it and runs `body` again.
  Status write(const WriterLock& lock, const std::function<Status(Txn&)>& body);

 private:
  Env(SafePath dir, const EnvOptions& options, std::shared_ptr<Generations> generations)
      : dir_(std::move(dir)), options_(options), generations_(std::move(generations)) {}
  Result<std::shared_ptr<const Mapping>> current();                       // opens a replaced data.mdb
  Result<std::shared_ptr<const Mapping>> remap(std::uint64_t map_bytes);  // the caller holds mutex_
  Result<std::shared_ptr<const Mapping>> enlarge(const std::shared_ptr<const Mapping>& small, std::uint64_t map_bytes);

  const SafePath dir_;
  const EnvOptions options_;
  const std::shared_ptr<Generations> generations_;
  std::mutex mutex_;
  std::shared_ptr<const Mapping> mapping_;  // guarded by mutex_
};

}  // namespace weft
