// A file system on libfuse that serves one file from memory, as fast as libfuse allows: memory_fs FILE DIR
// The baseline for reads through FUSE: requests, readahead, threads and flags are those of mount.weft. Stays in the
// foreground until it is unmounted. The file is DIR/file.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fuse/ops/ops.h"
#include "fuse/state/server.h"
#include "os/sys.h"

namespace {

using namespace weft;

constexpr fuse_ino_t kFileIno = 2;
constexpr unsigned kThreads = 16;
constexpr double kForever = 86400;
constexpr char kFileName[] = "file";

std::vector<std::byte> content;

struct stat attributes(fuse_ino_t ino) {
  struct stat out {};
  out.st_ino = ino;
  out.st_mode = ino == kFileIno ? S_IFREG | 0444U : S_IFDIR | 0555U;
  out.st_nlink = 1;
  out.st_size = ino == kFileIno ? static_cast<off_t>(content.size()) : 0;
  return out;
}

void get_attributes(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  const struct stat facts = attributes(ino);
  fuse_reply_attr(request, &facts, kForever);
}

void look_up(fuse_req_t request, fuse_ino_t, const char* name) {
  if (std::strcmp(name, kFileName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFileIno;
  entry.attr = attributes(kFileIno);
  entry.attr_timeout = entry.entry_timeout = kForever;
  fuse_reply_entry(request, &entry);
}

void open_it(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->keep_cache = 1;
  file->noflush = 1;
  fuse_reply_open(request, file);
}

void read_it(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  const auto at = std::min(static_cast<std::size_t>(offset), content.size());
  fuse_reply_buf(request, reinterpret_cast<const char*>(content.data() + at), std::min(size, content.size() - at));
}

Status load(const std::string& path) {
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY));
  WEFT_TRY(const auto facts, stat_fd(file.get(), path));
  content.resize(static_cast<std::size_t>(facts.st_size));
  return read_exact(file.get(), 0, content, path);
}

// Sets the readahead of this file system. Its stat(2) waits until a thread of the loop serves it.
Status set_read_ahead(const std::string& directory) {
  struct stat facts {};
  if (::stat(directory.c_str(), &facts) != 0) return sys_error(errno, directory);
  const std::string path = fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(facts.st_dev), minor(facts.st_dev));
  WEFT_TRY(const Fd file, open_file(path, O_WRONLY));
  const std::string text = std::to_string(kReadAheadKilobytes);
  return append_exact(file.get(), std::as_bytes(std::span(text)), path);
}

Status serve_file(const std::string& directory) {
  fuse_lowlevel_ops operations{};
  operations.init = op_init;
  operations.lookup = look_up;
  operations.getattr = get_attributes;
  operations.open = open_it;
  operations.read = read_it;
  std::string name = "memory_fs";
  std::string options = "-omax_read=" + std::to_string(kReadBytesMax);
  std::array<char*, 3> words{name.data(), options.data(), nullptr};
  fuse_args args{2, words.data(), 0};
  const std::unique_ptr<fuse_session, void (*)(fuse_session*)> session(
      fuse_session_new(&args, &operations, sizeof operations, nullptr), fuse_session_destroy);
  fuse_opt_free_args(&args);
  if (!session || fuse_session_mount(session.get(), directory.c_str()) != 0)
    return Error{Errc::permission, directory + ": no mount"};
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(fuse_loop_cfg_create(),
                                                                              fuse_loop_cfg_destroy);
  fuse_loop_cfg_set_max_threads(config.get(), kThreads);
  fuse_loop_cfg_set_idle_threads(config.get(), kThreads);
  fuse_loop_cfg_set_clone_fd(config.get(), 0);
  Status read_ahead;
  std::thread tuner([&] { read_ahead = set_read_ahead(directory); });
  const int failed = fuse_session_loop_mt(session.get(), config.get());
  tuner.join();
  fuse_session_unmount(session.get());
  if (failed < 0) return sys_error(-failed, "serving FUSE requests");
  return read_ahead;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: memory_fs FILE DIR\n");
    return 2;
  }
  Status status = load(argv[1]);
  if (status.ok()) status = serve_file(argv[2]);
  if (!status.ok()) std::fprintf(stderr, "memory_fs: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
