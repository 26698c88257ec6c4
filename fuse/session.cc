#include "session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "base/log.h"
#include "base/thread_pool.h"
#include "mountpoint.h"

namespace weft {
namespace {

constexpr unsigned kThreadsMin = 16;  // they wait for the disk more than they compute

// What libfuse last complained about; it has no other way to say why something failed.
class Complaint {
 public:
  void set(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  std::string get() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

Complaint& complaint() {
  static Complaint instance;
  return instance;
}

void keep_complaint(fuse_log_level, const char* format, va_list arguments) {
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  complaint().set(line.data());
  log_info("libfuse: {}", complaint().get());
}

// Custom io. No destructor may be pending where these read: libfuse cancels its threads there.
ssize_t read_request(int device, void* buffer, size_t size, void* server) {
  const ssize_t got = ::read(device, buffer, size);
  if (got > 0)
    static_cast<Server*>(server)->passthrough.see_request(
        {static_cast<const std::byte*>(buffer), static_cast<std::size_t>(got)});
  return got;
}

ssize_t write_reply(int device, iovec* parts, int count, void* server) {
  return static_cast<Server*>(server)->passthrough.send_reply(device, {parts, static_cast<std::size_t>(count)});
}

}  // namespace

Status Session::make(const std::string& options) {
  fuse_set_log_func(keep_complaint);
  std::array<std::string, 2> words{"mount.weft", options};
  std::array<char*, 3> argv{words[0].data(), words[1].data(), nullptr};
  fuse_args args{2, argv.data(), 0};
  session_.reset(fuse_session_new(&args, &kOperations, sizeof kOperations, &server_));
  fuse_opt_free_args(&args);
  if (!session_) return Error{Errc::internal, fmt::format("libfuse did not take the options {}", options)};
  return {};
}

Status Session::mount_ourselves() {
  static constexpr fuse_custom_io kIo{
      .writev = write_reply, .read = read_request, .splice_receive = nullptr, .splice_send = nullptr};
  WEFT_TRY(Fd device, open_fuse_device());
  WEFT_CHECK(make(fmt::format("-omax_read={}", kReadBytesMax)));
  server_.passthrough.want(on_overlayfs(server_.options.store) ? 2 : 1);
  WEFT_CHECK(mount_device(device.get(), server_.options));
  server_.device = device.release();
  if (const int failed = fuse_session_custom_io(session_.get(), &kIo, server_.device); failed < 0) {
    ::close(server_.device);
    force_unmount(server_.options.directory);
    return sys_error(-failed, "setting up the FUSE session");
  }
  return {};
}

Status Session::mount_by_fusermount() {
  WEFT_CHECK(make(fusermount_options(server_.options)));
  if (fuse_session_mount(session_.get(), server_.options.directory.c_str()) != 0)
    return Error{Errc::permission,
                 fmt::format("mounting on {} by fusermount3: {}", server_.options.directory, complaint().get())};
  server_.device = fuse_session_fd(session_.get());
  by_fusermount_ = true;
  return {};
}

Status Session::mount() {
  if (::geteuid() != 0) {
    server_.passthrough.refuse("only root can mount with it");
    return mount_by_fusermount();
  }
  Status mounted = mount_ourselves();
  if (mounted.ok() || mounted.error().code != Errc::permission) return mounted;
  server_.passthrough.refuse("root may not mount here; fusermount3 did");
  return mount_by_fusermount().ok() ? Status() : mounted;
}

Status Session::loop() {
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(fuse_loop_cfg_create(),
                                                                              fuse_loop_cfg_destroy);
  fuse_loop_cfg_set_max_threads(config.get(), std::max(kThreadsMin, 2 * usable_cpus()));
  fuse_loop_cfg_set_idle_threads(config.get(), kThreadsMin);
  fuse_loop_cfg_set_clone_fd(config.get(), 0);
  const int result = fuse_session_loop_mt(session_.get(), config.get());
  if (result < 0) return sys_error(-result, "serving FUSE requests");
  return {};
}

void Session::unmount() {
  if (by_fusermount_)
    fuse_session_unmount(session_.get());
  else
    force_unmount(server_.options.directory);
}

}  // namespace weft
