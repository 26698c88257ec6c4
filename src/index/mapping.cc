#include "index/mapping.h"

#include <fcntl.h>
#include <fmt/core.h>

#include "os/page_cache.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS;
constexpr int kReadAttempts = 1000;
// A larger index is mapped without kernel read-ahead. That would read up to some MiB around each page, but a search in
// a large index needs only the page.
constexpr std::int64_t kReadAroundMax = 256 << 20;

unsigned table_flags(std::size_t table) {
  return keeps_sets(static_cast<Table>(table)) ? MDB_DUPSORT | MDB_DUPFIXED : 0U;
}

// If this returned, LMDB would end the process.
void on_assert(MDB_env* /*env*/, const char* /*message*/) {
  escape_fault_guard();
}

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Rounds a map size up to a multiple that LMDB accepts. LMDB itself raises a size that is too small for the file.
std::uint64_t rounded(std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = 1U << 16U;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

Error lmdb_error(int code, std::string_view path, std::string_view what) {
  if (code > 0) return sys_error(code, fmt::format("{}: {}", path, what));
  switch (code) {
    case MDB_MAP_FULL:
      return Error{Errc::no_space, fmt::format("{}: {}: the index's map is full", path, what)};
    case MDB_VERSION_MISMATCH:
      return Error{Errc::unsupported,
                   fmt::format("{}: another version of LMDB wrote this; run `weft fsck --rebuild`", path)};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
    case MDB_NOTFOUND:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_BAD_TXN:
      return Error{Errc::corrupt, fmt::format("{}: {}: {}; run `weft fsck --rebuild`", path, what, mdb_strerror(code))};
    default:
      return Error{Errc::internal, fmt::format("{}: {}: {}", path, what, mdb_strerror(code))};
  }
}

Mapping::Mapping(SafePath path) : path_(std::move(path)), serial_(next_serial()) {}

Mapping::~Mapping() {
  if (env_ != nullptr && !leaked_) mdb_env_close(env_);
}

void Mapping::spoil(bool leak) const {
  spoiled_ = true;
  if (leak) leaked_ = true;
}

std::uint64_t Mapping::map_bytes() const {
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  return info.me_mapsize;
}

std::uint64_t Mapping::last_transaction() const {
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  return info.me_last_txnid;
}

void Mapping::unload_pages() const {
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  unload_mapped(info.me_mapaddr, info.me_mapsize);
}

// LMDB opens a file by its path. It gets the path of a descriptor that was opened below the store and checked.
Status Mapping::open_env(const OpenedFile& file, unsigned flags, std::uint64_t map_bytes) {
  WEFT_TRY(const std::string by_descriptor, path_of_descriptor(file.fd.get(), path_));
  int code = mdb_env_create(&env_);
  if (code != 0) return lmdb_error(code, path_, "open");
  mdb_env_set_assert(env_, on_assert);
  mdb_env_set_maxdbs(env_, kTableCount);
  mdb_env_set_mapsize(env_, rounded(map_bytes));
  code = call_lmdb([&] { return mdb_env_open(env_, by_descriptor.c_str(), kFlags | flags, 0644); });
  if (code == MDB_CORRUPTED) spoil(true);
  if (code != 0) return lmdb_error(code, path_, "open");
  mdb_filehandle_t opened = -1;
  code = mdb_env_get_fd(env_, &opened);
  if (code != 0) return lmdb_error(code, path_, "open");
  WEFT_TRY(const struct stat st, stat_fd(opened, path_));
  if (inode_of(st) != inode_of(file.st))
    return Error{Errc::internal, fmt::format("{}: LMDB opened another file by way of {}", path_, by_descriptor)};
  device_ = st.st_dev;
  inode_ = st.st_ino;
  return {};
}

Status Mapping::open_tables(MDB_txn* txn, unsigned flags) {
  for (std::size_t i = 0; i < kTableCount; ++i) {
    int code = call_lmdb([&] {
      return mdb_dbi_open(txn, table_name(static_cast<Table>(i)).data(), table_flags(i) | flags, &tables_[i]);
    });
    unsigned got = 0;
    if (code == 0) code = mdb_dbi_flags(txn, tables_[i], &got);
    if (code == 0 && got != table_flags(i)) code = MDB_CORRUPTED;
    if (code != 0) return lmdb_error(code, path_, fmt::format("table {}", table_name(static_cast<Table>(i)).data()));
  }
  return {};
}

Result<ReadHandle> Mapping::begin_read(Generations& generations, int& code) const {
  code = 0;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    std::uint64_t transaction = last_transaction();
    WEFT_TRY(Generations::Hold hold, generations.hold(transaction));
    MDB_txn* txn = nullptr;
    code = call_lmdb([&] { return mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn); });
    if (code != 0) return lmdb_error(code, path_, "read");
    if (mdb_txn_id(txn) == transaction) return ReadHandle{txn, std::move(hold)};
    mdb_txn_abort(txn);
  }
  return Error{Errc::busy, fmt::format("{}: the index changes too fast to be read", path_)};
}

Status Mapping::create(const SafePath& path) {
  Mapping mapping(path);
  WEFT_TRY(const OpenedFile file, open_with_stat(path, O_RDWR | O_CREAT));
  WEFT_CHECK(mapping.open_env(file, 0, 1U << 20U));
  MDB_txn* txn = nullptr;
  int code = mdb_txn_begin(mapping.env_, nullptr, 0, &txn);
  if (code != 0) return lmdb_error(code, path, "create");
  if (Status status = mapping.open_tables(txn, MDB_CREATE); !status.ok()) {
    mdb_txn_abort(txn);
    return status;
  }
  code = mdb_txn_commit(txn);
  return code == 0 ? Status{} : Status{lmdb_error(code, path, "create")};
}

Result<std::shared_ptr<const Mapping>> Mapping::open(const SafePath& path, const EnvOptions& options,
                                                     std::uint64_t map_bytes, Generations& generations) {
  std::shared_ptr<Mapping> mapping(new Mapping(path));
  WEFT_TRY(const OpenedFile file, open_with_stat(path, O_RDONLY));
  if (file.st.st_size == 0) return lmdb_error(MDB_INVALID, path, "empty");
  unsigned flags = (options.write ? 0U : MDB_RDONLY) | (options.sync ? 0U : MDB_NOSYNC);
  if (file.st.st_size > kReadAroundMax) flags |= MDB_NORDAHEAD;
  WEFT_CHECK(mapping->open_env(file, flags, map_bytes));
  int code = 0;
  WEFT_TRY(ReadHandle handle, mapping->begin_read(generations, code));
  Status status = mapping->open_tables(handle.txn, 0);
  if (!status.ok()) {
    mdb_txn_abort(handle.txn);
    return Error(std::move(status).error());
  }
  mdb_txn_commit(handle.txn);  // commit instead of abort, which keeps the table handles
  return std::shared_ptr<const Mapping>(std::move(mapping));
}

}  // namespace weft
