#include "fuse/serve.h"

#include <unistd.h>

#include "base/log.h"
#include "fuse/ops/session.h"
#include "fuse/process/channel.h"
#include "fuse/state/server.h"
#include "fuse/watcher.h"
#include "os/sys.h"
#include "weft/store.h"

namespace weft {
namespace {

// A later server must have settled passthrough before the first request.
void go_on(Server& server) {
  if (server.shared.head().init.answered == 0) return;
  if ((server.shared.head().init.reply.flags2 & kernel::kPassthroughFlag2) == 0) return;
  server.passthrough.agree();
  server.open_files.close_stray_ids();
  server.passthrough.probe(server.device, index_file(server.options.store));
}

// The mount is there and nobody serves it: what waits for the kernel would wait for ever.
[[noreturn]] void end_at_once(int channel, const Error& error) {
  log_error("{}", error.message);
  log_flush();
  const Status said = say(channel, Say::failed, error.message);
  ::_exit(said.ok() ? 1 : 2);
}

Status serve_device(Server& server, int channel) {
  if (const std::string why = shared_text(server.shared.head().passthrough_refused); !why.empty())
    server.passthrough.refuse(why);
  Session session(server);
  WEFT_CHECK(session.make());
  server.open_files.set_device(server.device);
  go_on(server);
  Watcher watcher(session, server, channel);
  server.notifier.start(session.kernel_cache());
  Status served = watcher.start();
  if (served.ok()) served = session.loop();
  watcher.loop_ended();
  watcher.join();
  if (!served.ok()) end_at_once(channel, served.error());
  server.vfs.stop_assembling();
  server.notifier.stop();
  return {};
}

}  // namespace

Status serve(Vfs& vfs, const MountOptions& options, const ServerEnds& ends) {
  const Fd channel(ends.channel);
  WEFT_TRY(SharedState shared, SharedState::attach(Fd(ends.state)));
  WEFT_CHECK(say(channel.get(), Say::opened));
  WEFT_TRY(auto message, hear(channel.get()));
  if (!message) return {};  // it did not come to a mount
  if (message->what != Say::device || !message->device.valid())
    return Error{Errc::internal, "the supervisor gave no device"};
  Server server(vfs, options, shared);  // only now: the server before is at its end
  server.device = message->device.release();
  return serve_device(server, channel.get());
}

}  // namespace weft
