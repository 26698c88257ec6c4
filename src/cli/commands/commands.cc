#include "cli/commands/commands.h"

namespace weft {

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (auto make : {make_import_command,  make_ls_command,       make_info_command,   make_mount_command,
                    make_umount_command,  make_tag_command,      make_diff_command,   make_log_command,
                    make_lineage_command, make_find_command,     make_match_command,  make_advise_command,
                    make_export_command,  make_rm_command,       make_gc_command,     make_du_command,
                    make_fsck_command,    make_scrub_command,    make_status_command, make_cache_command,
                    make_pin_command,     make_unpin_command,    make_init_command,   make_completion_command,
                    make_peers_command,   make_prefetch_command, make_evict_command,  make_stage_out_command,
                    make_restore_command, make_wait_command,     make_watch_command,  make_debug_command})
    commands.push_back(make());
  return commands;
}

}  // namespace weft
