#include "fuse/ops/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/thread_pool.h"
#include "fuse/kernel/libfuse_log.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr unsigned kThreadsIdle = 16;  // minimum; threads wait for the disk more than they compute
constexpr unsigned kThreadsMax = 512;  // reads that wait for other nodes must not hold up local reads

ssize_t read_request(int device, void* buffer, size_t size, void* server) {
  return static_cast<Server*>(server)->exchange.read(device, buffer, size);
}

ssize_t write_reply(int device, iovec* parts, int count, void* server) {
  return static_cast<Server*>(server)->exchange.write(device, {parts, static_cast<std::size_t>(count)});
}

}  // namespace

Status Session::make() {
  static constexpr fuse_custom_io kIo = [] {
    fuse_custom_io io{};  // newer versions of libfuse have more members
    io.writev = write_reply;
    io.read = read_request;
    return io;
  }();
  keep_libfuse_messages();
  std::array<std::string, 2> words{"mount.weft", fmt::format("-omax_read={}", kReadBytesMax)};
  std::array<char*, 3> argv{words[0].data(), words[1].data(), nullptr};
  fuse_args args{2, argv.data(), 0};
  session_.reset(fuse_session_new(&args, &kOperations, sizeof kOperations, &server_));
  fuse_opt_free_args(&args);
  if (!session_) return Error{Errc::internal, "libfuse makes no session: " + last_libfuse_message()};
  if (const int failed = fuse_session_custom_io(session_.get(), &kIo, server_.device); failed < 0)
    return sys_error(-failed, "setting up the FUSE session");
  return {};
}

Status Session::loop() {
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(fuse_loop_cfg_create(),
                                                                              fuse_loop_cfg_destroy);
  fuse_loop_cfg_set_max_threads(config.get(), kThreadsMax);
  fuse_loop_cfg_set_idle_threads(config.get(), std::max(kThreadsIdle, 2 * usable_cpus()));
  fuse_loop_cfg_set_clone_fd(config.get(), 0);
  const int result = fuse_session_loop_mt(session_.get(), config.get());
  if (result < 0) return sys_error(-result, "serving FUSE requests");
  return {};
}

}  // namespace weft
