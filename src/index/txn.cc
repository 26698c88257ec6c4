#include <utility>

#include "index/env.h"
#include "index/mapping.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::size_t kKeyMax = 511;  // LMDB's limit in Debian's build

MDB_val to_val(Bytes bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}
Bytes to_bytes(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}
bool possible_key(Bytes key) {
  return !key.empty() && key.size() <= kKeyMax;
}

// Reads a result's bytes inside the fault guard, since later readers have no guard. In a damaged file, LMDB's result
// may have any address and length.
__attribute__((no_sanitize("address", "thread"))) void touch(const MDB_val& val) {
  constexpr std::size_t kPage = 4096;
  const auto* bytes = static_cast<const volatile char*>(val.mv_data);
  for (std::size_t at = 0; at < val.mv_size; at += kPage) static_cast<void>(bytes[at]);
  if (val.mv_size > 0) static_cast<void>(bytes[val.mv_size - 1]);
}

// LMDB reports a short write as an I/O error.
bool disk_is_full(MDB_env* env) {
  constexpr std::uint64_t kNext = 1U << 20U;  // more than one write of LMDB
  mdb_filehandle_t fd = -1;
  if (mdb_env_get_fd(env, &fd) != 0) return false;
  const auto disk = disk_space(fd);
  return disk && disk->available < kNext;
}

}  // namespace

Txn::Txn(std::shared_ptr<const Mapping> mapping, MDB_txn* txn, Generations::Hold hold, bool writes)
    : mapping_(std::move(mapping)), hold_(std::move(hold)), txn_(txn), id_(mdb_txn_id(txn)), writes_(writes) {}

Txn::~Txn() {
  abort();
}

void Txn::abort() {
  MDB_txn* txn = std::exchange(txn_, nullptr);
  if (txn == nullptr) return;
  if (broken_ && writes_) return mapping_->spoil(true);
  static_cast<void>(call_lmdb([txn] { return mdb_txn_abort(txn), 0; }));
}

template <class Call>
int Txn::run(Call&& call) {
  if (broken_ || txn_ == nullptr) return MDB_BAD_TXN;
  broken_ = true;
  int code = call_lmdb(call);
  broken_ = code == MDB_CORRUPTED || code == MDB_PANIC;
  return code;
}

Txn::Txn(Txn&& other) noexcept
    : mapping_(std::move(other.mapping_)),
      hold_(std::move(other.hold_)),
      txn_(std::exchange(other.txn_, nullptr)),
      id_(other.id_),
      writes_(other.writes_),
      broken_(other.broken_),
      map_full_(other.map_full_) {}

IndexState Txn::state() const {
  return {mapping_->serial(), id_};
}

const std::string& Txn::path() const {
  return mapping_->path();
}

Error Txn::failed(int code, std::string_view what) {
  if (code == MDB_MAP_FULL) map_full_ = true;
  return lmdb_error(code, mapping_->path(), what);
}

Result<std::optional<Bytes>> Txn::get(Table table, Bytes key) {
  if (!possible_key(key)) return std::optional<Bytes>();
  MDB_val k = to_val(key);
  MDB_val v{};
  int code = run([&] {
    int got = mdb_get(txn_, mapping_->table(table), &k, &v);
    if (got == 0) touch(v);
    return got;
  });
  if (code == MDB_NOTFOUND) return std::optional<Bytes>();
  if (code != 0) return failed(code, table_name(table));
  return std::optional(to_bytes(v));
}

Result<Cursor> Txn::cursor(Table table) {
  MDB_cursor* cursor = nullptr;
  int code = run([&] { return mdb_cursor_open(txn_, mapping_->table(table), &cursor); });
  if (code != 0) return failed(code, table_name(table));
  return Cursor(cursor, this, table);
}

Result<std::uint64_t> Txn::count(Table table) {
  MDB_stat stat{};
  int code = run([&] { return mdb_stat(txn_, mapping_->table(table), &stat); });
  if (code != 0) return failed(code, table_name(table));
  return std::uint64_t{stat.ms_entries};
}

Status Txn::put(Table table, Bytes key, Bytes value) {
  MDB_val k = to_val(key);
  MDB_val v = to_val(value);
  int code = run([&] { return mdb_put(txn_, mapping_->table(table), &k, &v, 0); });
  return code == 0 ? Status{} : Status{failed(code, table_name(table))};
}

Status Txn::erase(Table table, Bytes key) {
  MDB_val k = to_val(key);
  int code = run([&] { return mdb_del(txn_, mapping_->table(table), &k, nullptr); });
  return code == 0 || code == MDB_NOTFOUND ? Status{} : Status{failed(code, table_name(table))};
}

Status Txn::erase_value(Table table, Bytes key, Bytes value) {
  MDB_val k = to_val(key);
  MDB_val v = to_val(value);
  int code = run([&] { return mdb_del(txn_, mapping_->table(table), &k, &v); });
  return code == 0 || code == MDB_NOTFOUND ? Status{} : Status{failed(code, table_name(table))};
}

Status Txn::commit() {
  return end_commit(run([&] { return mdb_txn_commit(txn_); }));
}

// Writes the meta page, which names the new state, without a sync. The pages that it refers to are synced.
Status Txn::commit_lazily() {
  MDB_env* env = mapping_->env();
  mdb_env_set_flags(env, MDB_NOMETASYNC, 1);
  const int code = run([&] { return mdb_txn_commit(txn_); });
  mdb_env_set_flags(env, MDB_NOMETASYNC, 0);
  return end_commit(code);
}

Status Txn::end_commit(int code) {
  txn_ = nullptr;
  if (code == 0) return {};
  mapping_->spoil(broken_);
  Error error = failed(code, "commit");
  if (error.code == Errc::io && disk_is_full(mapping_->env()))
    error = {Errc::no_space, path() + ": commit: no space left"};
  return error;
}

Cursor::~Cursor() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

Result<std::optional<Entry>> Cursor::move(int operation, Bytes key) {
  MDB_val k = to_val(key);
  MDB_val v{};
  int code = txn_->run([&] {
    int got = mdb_cursor_get(cursor_, &k, &v, static_cast<MDB_cursor_op>(operation));
    if (got == 0) touch(k);
    if (got == 0) touch(v);
    return got;
  });
  if (code == MDB_NOTFOUND) return std::optional<Entry>();
  if (code != 0) return txn_->failed(code, table_name(table_));
  Entry entry{to_bytes(k), to_bytes(v)};
  last_.first = entry.key;
  last_.second = keeps_sets(table_) ? entry.value : Bytes();
  return std::optional(entry);
}

Result<std::optional<Entry>> Cursor::step(int operation) {
  std::pair<std::string, std::string> before = std::move(last_);
  WEFT_TRY(std::optional<Entry> entry, move(operation, {}));
  if (entry && last_ <= before) return txn_->failed(MDB_CORRUPTED, table_name(table_));
  return entry;
}

Result<std::optional<Entry>> Cursor::seek(Bytes key) {
  if (key.empty()) return move(MDB_FIRST, key);
  return possible_key(key) ? move(MDB_SET_RANGE, key) : std::optional<Entry>();
}

Result<std::optional<Entry>> Cursor::seek_exact(Bytes key) {
  return possible_key(key) ? move(MDB_SET_KEY, key) : std::optional<Entry>();
}

Result<std::optional<Entry>> Cursor::seek_value(Bytes key, Bytes value) {
  MDB_val k = to_val(key);
  MDB_val v = to_val(value);
  int code = txn_->run([&] {
    int got = mdb_cursor_get(cursor_, &k, &v, MDB_GET_BOTH_RANGE);
    if (got == 0) touch(v);
    return got;
  });
  if (code == MDB_NOTFOUND) return std::optional<Entry>();
  if (code != 0) return txn_->failed(code, table_name(table_));
  last_ = {std::string(key), std::string(to_bytes(v))};
  return std::optional(Entry{key, to_bytes(v)});
}

Result<std::optional<Entry>> Cursor::seek_before(Bytes key) {
  WEFT_TRY(std::optional<Entry> at, seek(key));
  return at ? move(MDB_PREV, {}) : move(MDB_LAST, {});
}

Result<std::optional<Entry>> Cursor::next() {
  return step(MDB_NEXT);
}

Result<std::optional<Entry>> Cursor::next_of_key() {
  return step(MDB_NEXT_DUP);
}

// LMDB returns all values of the page, so those before the cursor's must be skipped.
Result<Bytes> Cursor::rest_of_page() {
  MDB_val k{};
  MDB_val v{};
  int code = txn_->run([&] {
    int got = mdb_cursor_get(cursor_, &k, &v, MDB_GET_MULTIPLE);
    if (got == 0) touch(v);
    return got;
  });
  if (code != 0) return txn_->failed(code, table_name(table_));
  Bytes page = to_bytes(v);
  if (page.empty()) return page;
  const std::size_t each = last_.second.size();
  if (each == 0 || page.size() % each != 0) return txn_->failed(MDB_CORRUPTED, table_name(table_));
  std::size_t at = 0;  // the cursor is mostly at the first value
  for (std::size_t end = page.starts_with(last_.second) ? 0 : page.size() / each; at < end;) {
    const std::size_t middle = at + (end - at) / 2;
    if (page.substr(middle * each, each) < last_.second)
      at = middle + 1;
    else
      end = middle;
  }
  page.remove_prefix(at * each);
  if (page.empty()) return txn_->failed(MDB_CORRUPTED, table_name(table_));
  last_.second = page.substr(page.size() - each);
  return page;
}

Result<std::uint64_t> Cursor::count_of_key() {
  std::size_t values = 0;
  int code = txn_->run([&] { return mdb_cursor_count(cursor_, &values); });
  if (code != 0) return txn_->failed(code, table_name(table_));
  return std::uint64_t{values};
}

}  // namespace weft
