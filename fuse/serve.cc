#include "fuse/serve.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/log.h"
#include "fuse/ops/session.h"
#include "fuse/process/channel.h"
#include "fuse/state/server.h"
#include "fuse/watcher.h"
#include "os/programs.h"
#include "os/sys.h"
#include "weft/store/store.h"

namespace weft {
namespace {

// Decides about passthrough in a later server. Runs before the first request.
void go_on(Server& server) {
  if (server.shared.head().init.answered == 0) return;
  if ((server.shared.head().init.reply.flags2 & kernel::kPassthroughFlag2) == 0) return;
  server.passthrough.agree();
  server.open_files.close_stray_ids();
  server.passthrough.probe(server.device, index_file(server.options.store));
}

// Exits without cleanup: nothing serves the mount, so threads that wait for the kernel would never end.
[[noreturn]] void end_at_once(int channel, const Error& error) {
  log_error("{}", error.message);
  log_flush();
  const Status said = say(channel, Say::failed, error.message);
  ::_exit(said.ok() ? 1 : 2);
}

Result<std::unique_ptr<DraftTree>> open_drafts(const MountOptions& options) {
  if (!options.publish) return std::unique_ptr<DraftTree>();
  return DraftTree::open(options.store);
}

PublisherOptions publishing(const MountOptions& options, const SharedHead& head) {
  const char* path = std::getenv("PATH");
  const auto program = find_program("weft", own_program(), path == nullptr ? "" : path);
  return {options.store, program.value_or("weft"), options.trust_store, options.durability, shared_text(head.mount_id)};
}

Status serve_device(Server& server, MountReports& reports, int channel) {
  if (const std::string why = shared_text(server.shared.head().passthrough_refused); !why.empty())
    server.passthrough.refuse(why);
  Session session(server);
  WEFT_CHECK(session.make());
  server.open_files.set_device(server.device);
  go_on(server);
  server.kernel_cache = session.kernel_cache();
  server.vfs.read_by_record(server.options.record_reads);
  server.events.start(server.device);
  Watcher watcher(session, server, reports, channel);
  server.notifier.start(*server.kernel_cache);
  if (server.checkpoints) server.checkpoints->start();
  Status served = watcher.start();
  if (served.ok()) served = session.loop();
  watcher.loop_ended();
  watcher.join();
  if (!served.ok()) end_at_once(channel, served.error());
  if (server.checkpoints) server.checkpoints->stop();
  server.events.stop();
  server.vfs.stop_assembling();
  server.notifier.stop();
  return {};
}

}  // namespace

Status serve(Vfs& vfs, PublishRights& rights, MountReports& reports, ColdReads* cold, const MountOptions& options,
             const ServerEnds& ends) {
  const Fd channel(ends.channel);
  WEFT_TRY(SharedState shared, SharedState::attach(Fd(ends.state)));
  WEFT_CHECK(say(channel.get(), Say::opened));
  WEFT_TRY(auto message, hear(channel.get()));
  if (!message) return {};  // the mount failed
  if (message->what != Say::device || !message->device.valid())
    return Error{Errc::internal, "the supervisor gave no device"};
  WEFT_TRY(auto drafts, open_drafts(options));
  // Not earlier: the previous server may have run until the device came.
  Server server(vfs, rights, std::move(drafts), publishing(options, shared.head()), options, shared);
  server.device = message->device.release();
  if (cold != nullptr) cold->on_wait([&log = server.requests] { log.alive(); });
  Status served = serve_device(server, reports, channel.get());
  if (cold != nullptr) cold->on_wait({});
  return served;
}

}  // namespace weft
