#include "session.h"

#include <fmt/core.h>
#include <fuse.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "base/thread_pool.h"
#include "mountpoint.h"

namespace weft {
namespace {

constexpr unsigned kThreadsMin = 16;  // they wait for the disk more than they compute
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kRequestBytes = 2 * kPageBytes;  // more than any request that we answer with more than a refusal

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

thread_local std::uint64_t request_now = 0;

// A request that is killed half copied is answered with EIO by the kernel; present pages are copied without a fault.
void touch(void* buffer, std::size_t size) {
  auto* bytes = static_cast<volatile std::byte*>(buffer);
  for (std::size_t at = 0; at < std::min(size, kRequestBytes); at += kPageBytes) bytes[at] = std::byte{};
}

void note_request(const void* buffer, std::size_t size) {
  kernel::InHeader header;
  if (size < sizeof header) return;
  std::memcpy(&header, buffer, sizeof header);
  request_now = header.unique & ~kernel::kUniqueResend;
}

// Custom io. No destructor may be pending where these read: libfuse cancels its threads there.
ssize_t read_request(int device, void* buffer, size_t size, void* server) {
  touch(buffer, size);
  const ssize_t got = ::read(device, buffer, size);
  if (got <= 0) return got;
  note_request(buffer, static_cast<std::size_t>(got));
  static_cast<Server*>(server)->passthrough.see_request(
      {static_cast<const std::byte*>(buffer), static_cast<std::size_t>(got)});
  return got;
}

ssize_t write_reply(int device, iovec* parts, int count, void* server) {
  return static_cast<Server*>(server)->passthrough.send_reply(device, {parts, static_cast<std::size_t>(count)});
}

}  // namespace

std::uint64_t current_request() {
  return request_now;
}

Status Session::make() {
  const std::string options = fmt::format("-omax_read={}", kReadBytesMax);
  std::array<std::string, 2> words{"mount.weft", options};
  std::array<char*, 3> argv{words[0].data(), words[1].data(), nullptr};
  fuse_args args{2, argv.data(), 0};
  session_.reset(fuse_session_new(&args, &kOperations, sizeof kOperations, &server_));
  fuse_opt_free_args(&args);
  if (!session_) return Error{Errc::internal, fmt::format("libfuse did not take the options {}", options)};
  return {};
}

// Closes `device` when it fails.
Status Session::serve_device(Fd device) {
  static constexpr fuse_custom_io kIo{
      .writev = write_reply, .read = read_request, .splice_receive = nullptr, .splice_send = nullptr};
  WEFT_CHECK(make());
  if (const int failed = fuse_session_custom_io(session_.get(), &kIo, device.get()); failed < 0)
    return sys_error(-failed, "setting up the FUSE session");
  server_.device = device.release();
  return {};
}

Status Session::mount_ourselves() {
  WEFT_TRY(Fd device, open_fuse_device());
  server_.passthrough.want(on_overlayfs(server_.options.store) ? 2 : 1);
  WEFT_CHECK(mount_device(device.get(), server_.options));
  Status set_up = serve_device(std::move(device));
  if (!set_up.ok()) unmount();
  return set_up;
}

Status Session::mount_by_fusermount() {
  Fd device(fuse_open_channel(server_.options.directory.c_str(), fusermount_options(server_.options).c_str()));
  if (!device.valid())
    return Error{Errc::permission,
                 fmt::format("mounting on {} by fusermount3: {}", server_.options.directory, complaint().get())};
  by_fusermount_ = true;
  Status set_up = serve_device(std::move(device));
  if (!set_up.ok()) unmount();
  return set_up;
}

Status Session::mount() {
  fuse_set_log_func(keep_complaint);
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
    unmount_by_fusermount(server_.options.directory);
  else
    force_unmount(server_.options.directory);
}

}  // namespace weft
