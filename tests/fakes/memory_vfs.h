// A Vfs tree in memory, to test the FUSE server without a store.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "os/sys.h"
#include "weft/programs/vfs.h"

namespace weft::testing {

// A point where two concurrent reads wait for each other.
struct Meeting {
  std::mutex mutex;
  std::condition_variable came;
  int inside = 0;    // guarded by mutex, like `met`
  bool met = false;  // two reads were there
};

// Filled by one thread, then read by any. commit() may be called at any time.
class MemoryVfs final : public Vfs {
 public:
  MemoryVfs();

  // Creates the parents. `path` is relative to the root.
  void add_file(const std::string& path, std::string content);
  // Adds a file whose backing file is `backing`. The server's own reads return other bytes, unless add_file() gave it
  // content.
  void add_backed_file(const std::string& path, const std::string& backing);
  void add_streamed_file(const std::string& path, std::string content);  // with ReadMode::streamed
  void add_meeting(const std::string& path, std::string content);  // a read waits 10 s for a second read, else Errc::io
  void add_link(const std::string& path, std::string target);
  void add_counter(const std::string& path);   // content: the counts of opens and lookups, and the mount's status
  void make_lasting(const std::string& path);  // names and attributes below never change

  void commit() { ++position_; }  // may run during reads; the tree is unchanged

  std::size_t entries_per_page = 1000;   // entries per page of a listing
  std::atomic<std::uint64_t> listed{0};  // pages listed

  std::atomic<std::uint64_t> lookups{0};
  std::atomic<std::uint64_t> reads{0};

  Result<Attr> lookup(Ino parent, std::string_view name) override;
  Result<Attr> getattr(Ino ino) override;
  Result<DirPage> list(Ino dir, ListPlace from) override;
  Result<Ino> parent(Ino dir) override;
  Result<std::string> readlink(Ino ino) override;
  Result<std::shared_ptr<OpenFile>> open(Ino ino) override;
  Result<struct statvfs> statfs() override;
  Result<Xattrs> xattrs(Ino ino) override;
  Result<std::uint64_t> position() override { return position_.load(); }
  void set_mount_status(std::function<std::string()> json_members) override;
  Result<Opened> open_with_attr(Ino ino) override;
  Result<Place> place(Ino ino) override;
  // The tree has no versions, events or assembled files.
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> /*versions*/) override {
    return std::vector<VersionHold>{};
  }
  Result<std::vector<EventLines>> events(std::uint64_t /*position*/) override { return std::vector<EventLines>(); }
  Result<std::unique_ptr<CommitWatch>> watch_commits() override {
    return Error{Errc::unsupported, "this tree has no events"};
  }
  void trim() override {}
  void assemble(const AssemblyOptions& /*options*/, std::function<void(Ino)> /*tell*/) override {}
  void stop_assembling() override {}
  void assemble_nothing(std::string /*reason*/) override {}
  void read_by_record(bool /*on*/) override {}
  bool assembled(Ino /*ino*/) override { return false; }
  Result<std::optional<Digest>> sha256_of(Ino /*ino*/) override { return std::optional<Digest>(); }

 private:
  struct Inode {
    Attr attr;
    Ino parent = kRootIno;
    std::string content;  // of files and links
    std::string backing;
    bool counter = false;
    ReadMode mode = ReadMode::cached;
    bool meeting = false;
    std::map<std::string, Ino, std::less<>> entries;
  };
  Inode& make(const std::string& path, FileType type);
  Result<const Inode*> find(Ino ino) const;
  void mark_lasting(Ino ino);

  std::map<Ino, Inode> inodes_;
  Meeting meeting_;
  std::atomic<std::uint64_t> opens_{0};
  std::atomic<std::uint64_t> position_{0};
  std::mutex mutex_;
  std::function<std::string()> mount_status_ = [] { return std::string(); };  // guarded by mutex_
};

}  // namespace weft::testing
