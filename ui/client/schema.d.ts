/** The server's routes. `npm run types` writes this file from its OpenAPI document; change it there. */

export interface paths {
    "/agents": {
        parameters: {
        };
        get: operations["get_agents"];
    };
    "/ask": {
        parameters: {
        };
        post: operations["post_ask"];
    };
    "/ask/{run_id}/cancel": {
        parameters: {
        };
        post: operations["post_ask_by_run_id_cancel"];
    };
    "/ask/{run_id}/events": {
        parameters: {
        };
        get: operations["get_ask_by_run_id_events"];
    };
    "/ask/context": {
        parameters: {
        };
        post: operations["post_ask_context"];
    };
    "/ask/defaults": {
        parameters: {
        };
        get: operations["get_ask_defaults"];
    };
    "/ask/stream": {
        parameters: {
        };
        post: operations["post_ask_stream"];
    };
    "/ask/switches": {
        parameters: {
        };
        put: operations["put_ask_switches"];
    };
    "/ask/waiting": {
        parameters: {
        };
        get: operations["get_ask_waiting"];
    };
    "/attachments/{path}": {
        parameters: {
        };
        get: operations["get_attachments_by_path"];
    };
    "/backlinks/{path}": {
        parameters: {
        };
        get: operations["get_backlinks_by_path"];
    };
    "/blocks": {
        parameters: {
        };
        get: operations["get_blocks"];
    };
    "/blocks/accept": {
        parameters: {
        };
        post: operations["post_blocks_accept"];
    };
    "/blocks/reject": {
        parameters: {
        };
        post: operations["post_blocks_reject"];
    };
    "/changes": {
        parameters: {
        };
        get: operations["get_changes"];
    };
    "/changes/{change_id}/undo": {
        parameters: {
        };
        post: operations["post_changes_by_change_id_undo"];
    };
    "/changes/undo": {
        parameters: {
        };
        post: operations["post_changes_undo"];
    };
    "/chat": {
        parameters: {
        };
        post: operations["post_chat"];
    };
    "/chat/{turn_id}/cancel": {
        parameters: {
        };
        post: operations["post_chat_by_turn_id_cancel"];
    };
    "/chat/{turn_id}/events": {
        parameters: {
        };
        get: operations["get_chat_by_turn_id_events"];
    };
    "/chat/stream": {
        parameters: {
        };
        post: operations["post_chat_stream"];
    };
    "/clients": {
        parameters: {
        };
        get: operations["get_clients"];
    };
    "/clients/{name}": {
        parameters: {
        };
        delete: operations["delete_clients_by_name"];
    };
    "/clients/{name}/rights": {
        parameters: {
        };
        get: operations["get_clients_by_name_rights"];
        put: operations["put_clients_by_name_rights"];
    };
    "/events": {
        parameters: {
        };
        get: operations["get_events"];
    };
    "/graph": {
        parameters: {
        };
        post: operations["post_graph"];
    };
    "/graph/{path}": {
        parameters: {
        };
        get: operations["get_graph_by_path"];
    };
    "/health": {
        parameters: {
        };
        get: operations["get_health"];
    };
    "/history": {
        parameters: {
        };
        get: operations["get_history"];
    };
    "/index": {
        parameters: {
        };
        post: operations["post_index"];
    };
    "/index/{job_id}/cancel": {
        parameters: {
        };
        post: operations["post_index_by_job_id_cancel"];
    };
    "/index/{job_id}/events": {
        parameters: {
        };
        get: operations["get_index_by_job_id_events"];
    };
    "/models": {
        parameters: {
        };
        get: operations["get_models"];
    };
    "/models/keys": {
        parameters: {
        };
        get: operations["get_models_keys"];
        put: operations["put_models_keys"];
    };
    "/models/offered": {
        parameters: {
        };
        get: operations["get_models_offered"];
    };
    "/models/trial": {
        parameters: {
        };
        post: operations["post_models_trial"];
    };
    "/notes/{path}": {
        parameters: {
        };
        get: operations["get_notes_by_path"];
    };
    "/pair": {
        parameters: {
        };
        post: operations["post_pair"];
    };
    "/pair/codes": {
        parameters: {
        };
        post: operations["post_pair_codes"];
    };
    "/presets": {
        parameters: {
        };
        get: operations["get_presets"];
    };
    "/presets/{name}": {
        parameters: {
        };
        put: operations["put_presets_by_name"];
        delete: operations["delete_presets_by_name"];
    };
    "/proposals": {
        parameters: {
        };
        get: operations["get_proposals"];
    };
    "/proposals/{proposal_id}": {
        parameters: {
        };
        get: operations["get_proposals_by_proposal_id"];
    };
    "/proposals/{proposal_id}/accept": {
        parameters: {
        };
        post: operations["post_proposals_by_proposal_id_accept"];
    };
    "/proposals/{proposal_id}/applied": {
        parameters: {
        };
        post: operations["post_proposals_by_proposal_id_applied"];
    };
    "/proposals/{proposal_id}/draw": {
        parameters: {
        };
        post: operations["post_proposals_by_proposal_id_draw"];
    };
    "/proposals/{proposal_id}/hunks/{hunk}": {
        parameters: {
        };
        put: operations["put_proposals_by_proposal_id_hunks_by_hunk"];
    };
    "/proposals/{proposal_id}/reject": {
        parameters: {
        };
        post: operations["post_proposals_by_proposal_id_reject"];
    };
    "/runs": {
        parameters: {
        };
        get: operations["get_runs"];
        post: operations["post_runs"];
    };
    "/runs/{run_id}": {
        parameters: {
        };
        get: operations["get_runs_by_run_id"];
        delete: operations["delete_runs_by_run_id"];
    };
    "/runs/{run_id}/cancel": {
        parameters: {
        };
        post: operations["post_runs_by_run_id_cancel"];
    };
    "/runs/{run_id}/checkpoints/{checkpoint_id}": {
        parameters: {
        };
        post: operations["post_runs_by_run_id_checkpoints_by_checkpoint_id"];
    };
    "/runs/{run_id}/events": {
        parameters: {
        };
        get: operations["get_runs_by_run_id_events"];
    };
    "/runs/{run_id}/export": {
        parameters: {
        };
        post: operations["post_runs_by_run_id_export"];
    };
    "/runs/{run_id}/nodes/{node_id}": {
        parameters: {
        };
        get: operations["get_runs_by_run_id_nodes_by_node_id"];
    };
    "/runs/{run_id}/notes": {
        parameters: {
        };
        get: operations["get_runs_by_run_id_notes"];
    };
    "/runs/{run_id}/resume": {
        parameters: {
        };
        post: operations["post_runs_by_run_id_resume"];
    };
    "/runs/{run_id}/stale": {
        parameters: {
        };
        get: operations["get_runs_by_run_id_stale"];
    };
    "/runs/options": {
        parameters: {
        };
        get: operations["get_runs_options"];
    };
    "/schedules": {
        parameters: {
        };
        get: operations["get_schedules"];
        post: operations["post_schedules"];
    };
    "/schedules/{name}": {
        parameters: {
        };
        delete: operations["delete_schedules_by_name"];
        patch: operations["patch_schedules_by_name"];
    };
    "/schedules/{name}/cancel": {
        parameters: {
        };
        post: operations["post_schedules_by_name_cancel"];
    };
    "/schedules/{name}/run": {
        parameters: {
        };
        post: operations["post_schedules_by_name_run"];
    };
    "/schedules/options": {
        parameters: {
        };
        get: operations["get_schedules_options"];
    };
    "/search": {
        parameters: {
        };
        get: operations["get_search"];
    };
    "/sessions": {
        parameters: {
        };
        get: operations["get_sessions"];
        post: operations["post_sessions"];
    };
    "/sessions/{session_id}": {
        parameters: {
        };
        get: operations["get_sessions_by_session_id"];
        delete: operations["delete_sessions_by_session_id"];
        patch: operations["patch_sessions_by_session_id"];
    };
    "/sessions/{session_id}/chat": {
        parameters: {
        };
        post: operations["post_sessions_by_session_id_chat"];
    };
    "/sessions/{session_id}/chat/stream": {
        parameters: {
        };
        post: operations["post_sessions_by_session_id_chat_stream"];
    };
    "/sessions/{session_id}/clear": {
        parameters: {
        };
        post: operations["post_sessions_by_session_id_clear"];
    };
    "/sessions/{session_id}/export": {
        parameters: {
        };
        post: operations["post_sessions_by_session_id_export"];
    };
    "/sessions/{session_id}/fork": {
        parameters: {
        };
        post: operations["post_sessions_by_session_id_fork"];
    };
    "/sessions/{session_id}/trace": {
        parameters: {
        };
        get: operations["get_sessions_by_session_id_trace"];
    };
    "/settings": {
        parameters: {
        };
        get: operations["get_settings"];
        put: operations["put_settings"];
    };
    "/tools": {
        parameters: {
        };
        get: operations["get_tools"];
    };
    "/tools/accept_proposal": {
        parameters: {
        };
        post: operations["post_tools_accept_proposal"];
    };
    "/tools/append_to_file": {
        parameters: {
        };
        post: operations["post_tools_append_to_file"];
    };
    "/tools/append_to_section": {
        parameters: {
        };
        post: operations["post_tools_append_to_section"];
    };
    "/tools/ask_vault": {
        parameters: {
        };
        post: operations["post_tools_ask_vault"];
    };
    "/tools/batch_move_files": {
        parameters: {
        };
        post: operations["post_tools_batch_move_files"];
    };
    "/tools/batch_update_frontmatter": {
        parameters: {
        };
        post: operations["post_tools_batch_update_frontmatter"];
    };
    "/tools/broken_links": {
        parameters: {
        };
        post: operations["post_tools_broken_links"];
    };
    "/tools/call_tool": {
        parameters: {
        };
        post: operations["post_tools_call_tool"];
    };
    "/tools/create_file": {
        parameters: {
        };
        post: operations["post_tools_create_file"];
    };
    "/tools/daily_note": {
        parameters: {
        };
        post: operations["post_tools_daily_note"];
    };
    "/tools/delete_file": {
        parameters: {
        };
        post: operations["post_tools_delete_file"];
    };
    "/tools/edit_at": {
        parameters: {
        };
        post: operations["post_tools_edit_at"];
    };
    "/tools/edit_file": {
        parameters: {
        };
        post: operations["post_tools_edit_file"];
    };
    "/tools/edit_proposal": {
        parameters: {
        };
        post: operations["post_tools_edit_proposal"];
    };
    "/tools/explore_vault": {
        parameters: {
        };
        post: operations["post_tools_explore_vault"];
    };
    "/tools/fetch_note": {
        parameters: {
        };
        post: operations["post_tools_fetch_note"];
    };
    "/tools/fetch_page": {
        parameters: {
        };
        post: operations["post_tools_fetch_page"];
    };
    "/tools/find_backlinks": {
        parameters: {
        };
        post: operations["post_tools_find_backlinks"];
    };
    "/tools/find_notes": {
        parameters: {
        };
        post: operations["post_tools_find_notes"];
    };
    "/tools/find_outlinks": {
        parameters: {
        };
        post: operations["post_tools_find_outlinks"];
    };
    "/tools/find_tool": {
        parameters: {
        };
        post: operations["post_tools_find_tool"];
    };
    "/tools/get_current_date": {
        parameters: {
        };
        post: operations["post_tools_get_current_date"];
    };
    "/tools/get_links": {
        parameters: {
        };
        post: operations["post_tools_get_links"];
    };
    "/tools/get_links_recursive": {
        parameters: {
        };
        post: operations["post_tools_get_links_recursive"];
    };
    "/tools/list_all_tags": {
        parameters: {
        };
        post: operations["post_tools_list_all_tags"];
    };
    "/tools/list_changes": {
        parameters: {
        };
        post: operations["post_tools_list_changes"];
    };
    "/tools/list_files_by_frontmatter": {
        parameters: {
        };
        post: operations["post_tools_list_files_by_frontmatter"];
    };
    "/tools/list_notes": {
        parameters: {
        };
        post: operations["post_tools_list_notes"];
    };
    "/tools/list_preferences": {
        parameters: {
        };
        post: operations["post_tools_list_preferences"];
    };
    "/tools/list_proposals": {
        parameters: {
        };
        post: operations["post_tools_list_proposals"];
    };
    "/tools/list_tags": {
        parameters: {
        };
        post: operations["post_tools_list_tags"];
    };
    "/tools/log_interaction": {
        parameters: {
        };
        post: operations["post_tools_log_interaction"];
    };
    "/tools/move_file": {
        parameters: {
        };
        post: operations["post_tools_move_file"];
    };
    "/tools/note_info": {
        parameters: {
        };
        post: operations["post_tools_note_info"];
    };
    "/tools/orphans": {
        parameters: {
        };
        post: operations["post_tools_orphans"];
    };
    "/tools/prepend_to_file": {
        parameters: {
        };
        post: operations["post_tools_prepend_to_file"];
    };
    "/tools/read_file": {
        parameters: {
        };
        post: operations["post_tools_read_file"];
    };
    "/tools/reject_proposal": {
        parameters: {
        };
        post: operations["post_tools_reject_proposal"];
    };
    "/tools/remove_preference": {
        parameters: {
        };
        post: operations["post_tools_remove_preference"];
    };
    "/tools/rename_anchor": {
        parameters: {
        };
        post: operations["post_tools_rename_anchor"];
    };
    "/tools/rename_tag": {
        parameters: {
        };
        post: operations["post_tools_rename_tag"];
    };
    "/tools/replace_section": {
        parameters: {
        };
        post: operations["post_tools_replace_section"];
    };
    "/tools/run_agent": {
        parameters: {
        };
        post: operations["post_tools_run_agent"];
    };
    "/tools/run_script": {
        parameters: {
        };
        post: operations["post_tools_run_script"];
    };
    "/tools/save_preference": {
        parameters: {
        };
        post: operations["post_tools_save_preference"];
    };
    "/tools/scout_vault": {
        parameters: {
        };
        post: operations["post_tools_scout_vault"];
    };
    "/tools/search_by_date_range": {
        parameters: {
        };
        post: operations["post_tools_search_by_date_range"];
    };
    "/tools/search_by_folder": {
        parameters: {
        };
        post: operations["post_tools_search_by_folder"];
    };
    "/tools/search_keyword": {
        parameters: {
        };
        post: operations["post_tools_search_keyword"];
    };
    "/tools/search_semantic": {
        parameters: {
        };
        post: operations["post_tools_search_semantic"];
    };
    "/tools/search_task_relevant": {
        parameters: {
        };
        post: operations["post_tools_search_task_relevant"];
    };
    "/tools/search_vault": {
        parameters: {
        };
        post: operations["post_tools_search_vault"];
    };
    "/tools/show_proposal": {
        parameters: {
        };
        post: operations["post_tools_show_proposal"];
    };
    "/tools/transcribe_audio": {
        parameters: {
        };
        post: operations["post_tools_transcribe_audio"];
    };
    "/tools/undo_change": {
        parameters: {
        };
        post: operations["post_tools_undo_change"];
    };
    "/tools/update_frontmatter": {
        parameters: {
        };
        post: operations["post_tools_update_frontmatter"];
    };
    "/tools/vault_status": {
        parameters: {
        };
        post: operations["post_tools_vault_status"];
    };
    "/tools/view_all_notes": {
        parameters: {
        };
        post: operations["post_tools_view_all_notes"];
    };
    "/tools/web_search": {
        parameters: {
        };
        post: operations["post_tools_web_search"];
    };
    "/tools/write_file": {
        parameters: {
        };
        post: operations["post_tools_write_file"];
    };
    "/trust": {
        parameters: {
        };
        get: operations["get_trust"];
        post: operations["post_trust"];
    };
    "/usage": {
        parameters: {
        };
        get: operations["get_usage"];
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        "accept_proposal.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "accept_proposal.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "accept_proposal.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "accept_proposal.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "append_to_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "append_to_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "append_to_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "append_to_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "append_to_section.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "append_to_section.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "append_to_section.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "append_to_section.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "batch_move_files.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "batch_move_files.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "batch_move_files.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "batch_move_files.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "batch_update_frontmatter.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "batch_update_frontmatter.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "batch_update_frontmatter.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "batch_update_frontmatter.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "broken_links.LinkRow": {
            alias?: string;
            also_fits?: string[];
            block?: string;
            headings?: string[];
            kind: string;
            leads_to: string | null;
            line: number;
            path: string;
            property?: string;
            self_link?: boolean;
            target: string;
        };
        ChatEvent: {
            message: string;
            session_id: string;
            turn_id: string;
            /** @constant */
            type: "start";
        } | ({
            step: number;
            text: string;
            /** @constant */
            type: "text";
        } | {
            arguments: {
                [key: string]: unknown;
            };
            id: string;
            name: string;
            /** @constant */
            type: "tool_call";
        } | {
            answer: {
                [key: string]: unknown;
            };
            chars: number;
            id: string;
            name: string;
            success: boolean;
            summary: string;
            truncated: boolean;
            /** @constant */
            type: "tool_result";
        } | {
            limit: number;
            number: number;
            phase: string;
            /** @constant */
            type: "round";
        } | {
            proposal: {
                change_ids?: string[];
                client: string;
                created: string;
                decided_at?: string;
                decided_by?: string;
                digest: string;
                expires: string;
                files: {
                    base_hash?: string;
                    diff: string;
                    follows: boolean;
                    group: number;
                    hunks: {
                        block?: string;
                        edited?: boolean;
                        id: string;
                        line: number;
                        new: string;
                        old: string;
                        reason?: string;
                        stale?: {
                            code: string;
                            current_text?: string;
                            line?: number;
                            message: string;
                        };
                        state: string;
                        words: string[][];
                    }[];
                    kind: string;
                    number: number;
                    path: string;
                    reason?: string;
                    stale?: {
                        code: string;
                        current_text?: string;
                        line?: number;
                        message: string;
                    };
                    state: string;
                    target?: string;
                }[];
                folders?: {
                    path: string;
                    target: string;
                }[];
                id: string;
                links_rewritten?: {
                    line: number;
                    new: string;
                    old: string;
                    path: string;
                }[];
                notes?: string[];
                reason?: string;
                rejection?: string;
                review_command?: string;
                review_url?: string;
                run?: string;
                /** @enum {string} */
                status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                success: boolean;
                superseded_by?: string;
                tainted?: boolean;
                /** @enum {string} */
                undone?: "all" | "part";
                undone_by?: string[];
                why?: string;
            };
            /** @constant */
            type: "proposal";
        } | {
            id: string;
            options: unknown[];
            question: string;
            /** @constant */
            type: "question";
        } | {
            cost_usd: number | null;
            input_tokens: number;
            output_tokens: number;
            requests: number;
            /** @constant */
            type: "usage";
        } | {
            phase: string;
            text: string;
            title: string;
            /** @constant */
            type: "debug";
        } | {
            text: string;
            /** @constant */
            type: "notice";
        } | {
            code: string;
            error: string;
            hint: string;
            /** @constant */
            type: "error";
        } | {
            answer: string;
            changes: unknown[];
            citations: unknown[];
            model: string;
            notes: unknown[];
            proposals: unknown[];
            removed: unknown[];
            session_id: string;
            /** @enum {string} */
            state: "complete" | "limit" | "asked" | "cancelled" | "failed";
            tools: unknown[];
            /** @constant */
            type: "done";
            usage: {
                [key: string]: unknown;
            };
        });
        "create_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "create_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "create_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "create_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "daily_note.NoteProblem": {
            code: string;
            line: number;
            message: string;
        };
        "daily_note.PendingEdit": {
            id: string;
            is_whole: boolean;
            line: number;
            type: string | null;
        };
        "daily_note.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "delete_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "delete_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "delete_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "delete_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "edit_at.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "edit_at.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "edit_at.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "edit_at.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "edit_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "edit_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "edit_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "edit_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "edit_proposal.FolderMove": {
            path: string;
            target: string;
        };
        "edit_proposal.ProposalFile": {
            base_hash?: string;
            diff: string;
            follows: boolean;
            group: number;
            hunks: components["schemas"]["edit_proposal.ProposalHunk"][];
            kind: string;
            number: number;
            path: string;
            reason?: string;
            stale?: components["schemas"]["edit_proposal.StaleReason"];
            state: string;
            target?: string;
        };
        "edit_proposal.ProposalHunk": {
            block?: string;
            edited?: boolean;
            id: string;
            line: number;
            new: string;
            old: string;
            reason?: string;
            stale?: components["schemas"]["edit_proposal.StaleReason"];
            state: string;
            words: string[][];
        };
        "edit_proposal.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "edit_proposal.StaleReason": {
            code: string;
            current_text?: string;
            line?: number;
            message: string;
        };
        Error: {
            code: string;
            error: string;
            hint?: string;
            /** @constant */
            success: false;
        };
        "explore_vault.FolderRow": {
            notes: number;
            path: string;
        };
        "explore_vault.NamedNote": {
            aliases?: string[];
            description?: string;
            foreign?: boolean;
            path: string;
            title: string;
        };
        FeedEvent: {
            /** @enum {unknown} */
            type: "start" | "change" | "waiting" | "settled" | "schedule";
        };
        "fetch_note.EmbedContent": {
            code?: string;
            content?: string;
            embed: string;
            end_line?: number;
            error?: string;
            foreign?: boolean;
            line: number;
            path?: string;
            start_line?: number;
            truncated?: boolean;
        };
        "fetch_note.NoteProblem": {
            code: string;
            line: number;
            message: string;
        };
        "fetch_note.PendingEdit": {
            id: string;
            is_whole: boolean;
            line: number;
            type: string | null;
        };
        "find_backlinks.LinkRow": {
            alias?: string;
            also_fits?: string[];
            block?: string;
            headings?: string[];
            kind: string;
            leads_to: string | null;
            line: number;
            path: string;
            property?: string;
            self_link?: boolean;
            target: string;
        };
        "find_outlinks.LinkRow": {
            alias?: string;
            also_fits?: string[];
            block?: string;
            headings?: string[];
            kind: string;
            leads_to: string | null;
            line: number;
            path: string;
            property?: string;
            self_link?: boolean;
            target: string;
        };
        "find_tool.ToolDescription": {
            description: string;
            effect: string;
            name: string;
            parameters: {
                [key: string]: unknown;
            };
            returns?: {
                [key: string]: unknown;
            };
        };
        "get_links_recursive.ReachableNote": {
            depth: number;
            path: string;
            title: string;
            via: string;
        };
        "get_links.Neighbor": {
            /** @enum {string} */
            direction: "in" | "out" | "both";
            path: string;
            title: string;
        };
        IndexEvent: {
            job_id: string;
            /** @constant */
            type: "start";
            vault: string;
        } | ({
            done: number;
            /** @enum {string} */
            phase: "scan" | "read" | "embed" | "publish";
            total: number;
            /** @constant */
            type: "progress";
        } | {
            code: string;
            error: string;
            hint: string;
            /** @constant */
            type: "error";
        } | {
            chunks: number;
            embedded: number;
            indexed: number;
            notes: number;
            pending: number;
            problems: unknown[];
            removed: number;
            /** @enum {string} */
            state: "complete" | "cancelled" | "failed";
            /** @constant */
            type: "indexed";
            unchanged: number;
            vault: string;
        });
        "list_all_tags.TagRow": {
            notes: number;
            tag: string;
        };
        "list_changes.ChangeRow": {
            at: string;
            client: string;
            files: components["schemas"]["list_changes.WrittenFile"][];
            hidden_files?: number;
            id: string;
            proposal_id?: string;
            reason?: string;
            run?: string;
            undoes?: string[];
            undone?: string | boolean;
        };
        "list_changes.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "list_notes.NotePreview": {
            foreign?: boolean;
            modified: string;
            path: string;
            preview?: string;
            title: string;
        };
        "list_preferences.PreferenceRow": {
            line: number;
            line_number: number;
            preference: string;
        };
        "list_proposals.ProposalRow": {
            client: string;
            created: string;
            decided_at?: string;
            decided_by?: string;
            expires: string;
            files: number;
            id: string;
            items: {
                [key: string]: number;
            };
            path: string;
            reason?: string;
            run?: string;
            /** @enum {string} */
            status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
            tainted?: boolean;
            /** @enum {string} */
            undone?: "all" | "part";
            undone_by?: string[];
            why?: string;
        };
        "list_tags.TagRow": {
            notes: number;
            tag: string;
        };
        "log_interaction.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "log_interaction.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "log_interaction.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "log_interaction.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "move_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "move_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "move_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "move_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "note_info.HeadingRow": {
            end_line: number;
            heading: string;
            line: number;
        };
        "note_info.IncomingLinks": {
            results: string[];
            total: number;
        };
        "note_info.NoteProblem": {
            code: string;
            line: number;
            message: string;
        };
        "note_info.OutgoingLinkRow": {
            leads_to: string | null;
            line: number;
            target: string;
        };
        "note_info.OutgoingLinks": {
            results: components["schemas"]["note_info.OutgoingLinkRow"][];
            total: number;
        };
        "note_info.PendingEdit": {
            id: string;
            is_whole: boolean;
            line: number;
            type: string | null;
        };
        "note_info.TaskRow": {
            line: number;
            state: string;
            text: string;
        };
        "note_info.TaskRows": {
            open: number;
            results: components["schemas"]["note_info.TaskRow"][];
            total: number;
        };
        "prepend_to_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "prepend_to_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "prepend_to_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "prepend_to_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "read_file.EmbedContent": {
            code?: string;
            content?: string;
            embed: string;
            end_line?: number;
            error?: string;
            foreign?: boolean;
            line: number;
            path?: string;
            start_line?: number;
            truncated?: boolean;
        };
        "read_file.NoteProblem": {
            code: string;
            line: number;
            message: string;
        };
        "read_file.PendingEdit": {
            id: string;
            is_whole: boolean;
            line: number;
            type: string | null;
        };
        "remove_preference.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "remove_preference.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "remove_preference.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "remove_preference.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "rename_anchor.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "rename_anchor.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "rename_anchor.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "rename_anchor.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "rename_tag.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "rename_tag.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "rename_tag.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "rename_tag.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "replace_section.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "replace_section.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "replace_section.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "replace_section.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "run_script.ScriptProposal": {
            id: string;
            review_command: string;
            review_url?: string;
            vault: string;
        };
        RunEvent: {
            run_id: string;
            task: string;
            /** @constant */
            type: "start";
        } | ({
            resumed: boolean;
            run: {
                also: string[];
                client: string;
                code_mode: boolean;
                created: string;
                id: string;
                limits: {
                    cents: number;
                    depth: number;
                    nodes: number;
                    parallel: number;
                    seconds: number;
                    tokens: number;
                };
                model: string;
                reasons: string[];
                /** @enum {string} */
                state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                strategy: string;
                task: string;
                updated: string;
            };
            /** @constant */
            type: "run_started";
        } | {
            doing: string;
            node: {
                cached: boolean;
                children: string[];
                citation_count: number;
                cost_usd: number | null;
                depth: number;
                id: string;
                parent: string;
                reason: string;
                score: number | null;
                spans: {
                    doing: string;
                    ended: string | null;
                    started: string;
                }[];
                /** @enum {string} */
                state: "pending" | "running" | "done" | "partial" | "failed" | "blocked" | "cut";
                tier: string;
                title: string;
                tokens: number;
            };
            /** @constant */
            type: "node";
        } | {
            answer: string;
            id: string;
            node_id: string;
            options: string[];
            question: string;
            /** @constant */
            type: "checkpoint";
            unattended: boolean;
        } | {
            text: string;
            /** @constant */
            type: "notice";
        } | {
            cost_usd: number | null;
            input_tokens: number;
            output_tokens: number;
            requests: number;
            /** @constant */
            type: "usage";
        } | {
            code: string;
            error: string;
            hint: string;
            /** @constant */
            type: "error";
        } | {
            answer: string;
            cached: number;
            citations: unknown[];
            failed: {
                cached: boolean;
                children: string[];
                citation_count: number;
                cost_usd: number | null;
                depth: number;
                id: string;
                parent: string;
                reason: string;
                score: number | null;
                spans: {
                    doing: string;
                    ended: string | null;
                    started: string;
                }[];
                /** @enum {string} */
                state: "pending" | "running" | "done" | "partial" | "failed" | "blocked" | "cut";
                tier: string;
                title: string;
                tokens: number;
            }[];
            model: string;
            nodes: number;
            reasons: string[];
            removed: unknown[];
            run_id: string;
            /** @enum {string} */
            state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
            /** @constant */
            type: "run_done";
            usage: {
                [key: string]: unknown;
            };
        });
        "save_preference.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "save_preference.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "save_preference.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "save_preference.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "search_keyword.NoteCopy": {
            end_line: number;
            hash: string;
            path: string;
            start_line: number;
        };
        "search_keyword.NoteHit": {
            also?: components["schemas"]["search_keyword.NoteCopy"][];
            content: string;
            cosine?: number;
            end_line: number;
            foreign?: boolean;
            hash: string;
            heading: string;
            /** @enum {string} */
            match?: "title" | "heading" | "content";
            path: string;
            score: number;
            start_line: number;
            title: string;
            why?: ("task" | "current_note" | "linked")[];
        };
        "search_semantic.NoteCopy": {
            end_line: number;
            hash: string;
            path: string;
            start_line: number;
        };
        "search_semantic.NoteHit": {
            also?: components["schemas"]["search_semantic.NoteCopy"][];
            content: string;
            cosine?: number;
            end_line: number;
            foreign?: boolean;
            hash: string;
            heading: string;
            /** @enum {string} */
            match?: "title" | "heading" | "content";
            path: string;
            score: number;
            start_line: number;
            title: string;
            why?: ("task" | "current_note" | "linked")[];
        };
        "search_task_relevant.NoteCopy": {
            end_line: number;
            hash: string;
            path: string;
            start_line: number;
        };
        "search_task_relevant.NoteHit": {
            also?: components["schemas"]["search_task_relevant.NoteCopy"][];
            content: string;
            cosine?: number;
            end_line: number;
            foreign?: boolean;
            hash: string;
            heading: string;
            /** @enum {string} */
            match?: "title" | "heading" | "content";
            path: string;
            score: number;
            start_line: number;
            title: string;
            why?: ("task" | "current_note" | "linked")[];
        };
        "search_vault.PassageCopy": {
            end_line: number;
            hash: string;
            source: string;
            start_line: number;
        };
        "search_vault.PassageHit": {
            also?: components["schemas"]["search_vault.PassageCopy"][];
            content: string;
            cosine?: number;
            end_line: number;
            explain?: {
                [key: string]: number;
            };
            foreign?: boolean;
            hash: string;
            heading: string;
            matches?: number[][];
            score: number;
            source: string;
            start_line: number;
        };
        "show_proposal.FolderMove": {
            path: string;
            target: string;
        };
        "show_proposal.ProposalFile": {
            base_hash?: string;
            diff: string;
            follows: boolean;
            group: number;
            hunks: components["schemas"]["show_proposal.ProposalHunk"][];
            kind: string;
            number: number;
            path: string;
            reason?: string;
            stale?: components["schemas"]["show_proposal.StaleReason"];
            state: string;
            target?: string;
        };
        "show_proposal.ProposalHunk": {
            block?: string;
            edited?: boolean;
            id: string;
            line: number;
            new: string;
            old: string;
            reason?: string;
            stale?: components["schemas"]["show_proposal.StaleReason"];
            state: string;
            words: string[][];
        };
        "show_proposal.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "show_proposal.StaleReason": {
            code: string;
            current_text?: string;
            line?: number;
            message: string;
        };
        TaskEvent: {
            run_id: string;
            task: string;
            /** @constant */
            type: "start";
        } | ({
            step: number;
            text: string;
            /** @constant */
            type: "text";
        } | {
            arguments: {
                [key: string]: unknown;
            };
            id: string;
            name: string;
            /** @constant */
            type: "tool_call";
        } | {
            answer: {
                [key: string]: unknown;
            };
            chars: number;
            id: string;
            name: string;
            success: boolean;
            summary: string;
            truncated: boolean;
            /** @constant */
            type: "tool_result";
        } | {
            limit: number;
            number: number;
            phase: string;
            /** @constant */
            type: "round";
        } | {
            proposal: {
                change_ids?: string[];
                client: string;
                created: string;
                decided_at?: string;
                decided_by?: string;
                digest: string;
                expires: string;
                files: {
                    base_hash?: string;
                    diff: string;
                    follows: boolean;
                    group: number;
                    hunks: {
                        block?: string;
                        edited?: boolean;
                        id: string;
                        line: number;
                        new: string;
                        old: string;
                        reason?: string;
                        stale?: {
                            code: string;
                            current_text?: string;
                            line?: number;
                            message: string;
                        };
                        state: string;
                        words: string[][];
                    }[];
                    kind: string;
                    number: number;
                    path: string;
                    reason?: string;
                    stale?: {
                        code: string;
                        current_text?: string;
                        line?: number;
                        message: string;
                    };
                    state: string;
                    target?: string;
                }[];
                folders?: {
                    path: string;
                    target: string;
                }[];
                id: string;
                links_rewritten?: {
                    line: number;
                    new: string;
                    old: string;
                    path: string;
                }[];
                notes?: string[];
                reason?: string;
                rejection?: string;
                review_command?: string;
                review_url?: string;
                run?: string;
                /** @enum {string} */
                status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                success: boolean;
                superseded_by?: string;
                tainted?: boolean;
                /** @enum {string} */
                undone?: "all" | "part";
                undone_by?: string[];
                why?: string;
            };
            /** @constant */
            type: "proposal";
        } | {
            id: string;
            options: unknown[];
            question: string;
            /** @constant */
            type: "question";
        } | {
            cost_usd: number | null;
            input_tokens: number;
            output_tokens: number;
            requests: number;
            /** @constant */
            type: "usage";
        } | {
            phase: string;
            text: string;
            title: string;
            /** @constant */
            type: "debug";
        } | {
            text: string;
            /** @constant */
            type: "notice";
        } | {
            code: string;
            error: string;
            hint: string;
            /** @constant */
            type: "error";
        } | {
            answer: string;
            changes: unknown[];
            citations: unknown[];
            model: string;
            notes: unknown[];
            proposals: unknown[];
            removed: unknown[];
            session_id: string;
            /** @enum {string} */
            state: "complete" | "limit" | "asked" | "cancelled" | "failed";
            tools: unknown[];
            /** @constant */
            type: "done";
            usage: {
                [key: string]: unknown;
            };
        } | {
            /** @enum {string} */
            phase: "scout" | "web" | "task" | "orchestrator";
            /** @enum {string} */
            state: "started" | "going_on" | "ended";
            text: string;
            /** @constant */
            type: "progress";
        } | {
            scout: {
                [key: string]: unknown;
            };
            /** @constant */
            type: "selection";
        } | {
            /** @constant */
            type: "sources";
            web: {
                [key: string]: unknown;
            };
        } | {
            context: {
                [key: string]: unknown;
            };
            /** @constant */
            type: "context";
        } | {
            path: string;
            /** @constant */
            type: "navigate";
        } | {
            answer: string;
            citations: {
                [key: string]: unknown;
            }[];
            context: {
                [key: string]: unknown;
            };
            edit_results: {
                [key: string]: unknown;
            };
            error: {
                [key: string]: unknown;
            } | null;
            model: string;
            notices: string[];
            opened: string[];
            pipeline: {
                [key: string]: unknown;
            };
            proposals: string[];
            proposed_edits: {
                [key: string]: unknown;
            }[];
            question: {
                [key: string]: unknown;
            } | null;
            removed: {
                [key: string]: unknown;
            }[];
            run_id: string;
            session_id: string;
            /** @enum {string} */
            state: "complete" | "asked" | "cancelled" | "failed" | "limit";
            /** @constant */
            type: "outcome";
            usage: {
                [key: string]: unknown;
            };
            waiting: {
                [key: string]: unknown;
            }[];
        });
        "transcribe_audio.RecordingTranscript": {
            cached: boolean;
            duration_s?: number;
            file: string;
            foreign?: boolean;
            language?: string;
            path: string;
            segments?: components["schemas"]["transcribe_audio.SpokenSegment"][];
            transcript: string;
        };
        "transcribe_audio.SpokenSegment": {
            end: number;
            speaker?: string;
            start: number;
            text: string;
        };
        "transcribe_audio.TranscriptionFailure": {
            code: string;
            error: string;
            file: string;
            hint?: string;
        };
        "undo_change.UndoConflict": {
            current_hash: string | null;
            later?: string[];
            path: string;
            problem: string;
        };
        "undo_change.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "update_frontmatter.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "update_frontmatter.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "update_frontmatter.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "update_frontmatter.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
        "vault_status.SkippedFileRow": {
            code: string;
            line: number;
            path: string;
            problem: string;
        };
        "view_all_notes.NamedNote": {
            aliases?: string[];
            description?: string;
            foreign?: boolean;
            path: string;
            title: string;
        };
        "web_search.WebPageHit": {
            snippet: string;
            title: string;
            url: string;
        };
        "write_file.RequestFailure": {
            code: string;
            error: string;
            hint?: string;
            path?: string;
            request: number;
        };
        "write_file.RewrittenLink": {
            line: number;
            new: string;
            old: string;
            path: string;
        };
        "write_file.RuleRefusal": {
            code: string;
            error: string;
            hint?: string;
            path: string;
        };
        "write_file.WrittenFile": {
            /** @enum {string} */
            action: "edited" | "created" | "moved" | "trashed" | "linked" | "removed" | "restored";
            before_hash?: string;
            diff?: string;
            diff_truncated?: boolean;
            hash?: string;
            path: string;
            target?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_agents: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        results: {
                            name: string;
                            summary: string;
                            title: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_ask: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    added?: string[] | null;
                    answer?: string | null;
                    auto_search?: boolean | null;
                    can?: ("add" | "delete" | "create" | "navigate")[] | null;
                    chat_history_length?: number | null;
                    debug?: boolean | null;
                    /** @enum {string|null} */
                    editable?: "current" | "linked" | "context" | null;
                    excluded_folders?: string[] | null;
                    fetch_limit?: number | null;
                    include_same_folder?: boolean | null;
                    keyword_limit?: number | null;
                    link_depth?: number | null;
                    linked_notes?: number | null;
                    model?: string | null;
                    note?: string | null;
                    notes?: number | null;
                    orchestrate?: boolean | null;
                    orchestrator_steps?: number | null;
                    orchestrator_tokens?: number | null;
                    preset?: string | null;
                    rounds?: number | null;
                    rules?: {
                        can?: ("add" | "delete" | "create" | "navigate")[] | null;
                        /** @enum {string|null} */
                        editable?: "current" | "linked" | "context" | null;
                    } | null;
                    run_id?: string | null;
                    scope?: {
                        excluded_folders?: string[] | null;
                        include_same_folder?: boolean | null;
                        link_depth?: number | null;
                    } | null;
                    scout?: boolean | null;
                    semantic_notes?: number | null;
                    semantic_similarity?: number | null;
                    session_id?: string | null;
                    show_tags?: boolean | null;
                    snippet_limit?: number | null;
                    task?: string | null;
                    timeout_s?: number | null;
                    toggles?: {
                        scout?: boolean | null;
                        task?: boolean | null;
                        web?: boolean | null;
                    } | null;
                    token_budget?: number | null;
                    token_limit?: number | null;
                    tools?: ("list_notes" | "search_keyword" | "search_semantic" | "search_task_relevant" | "fetch_note" | "get_links" | "get_links_recursive" | "view_all_notes" | "explore_vault" | "list_all_tags" | "ask_user")[] | null;
                    vault?: string | null;
                    web?: boolean | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: string;
                        citations: {
                            [key: string]: unknown;
                        }[];
                        context: {
                            [key: string]: unknown;
                        };
                        edit_results: {
                            [key: string]: unknown;
                        };
                        error: {
                            [key: string]: unknown;
                        } | null;
                        model: string;
                        notices: string[];
                        opened: string[];
                        pipeline: {
                            [key: string]: unknown;
                        };
                        proposals: string[];
                        proposed_edits: {
                            [key: string]: unknown;
                        }[];
                        question: {
                            options?: unknown[];
                            question?: string;
                        } | null;
                        removed: {
                            [key: string]: unknown;
                        }[];
                        run_id: string;
                        session_id: string;
                        /** @enum {unknown} */
                        state: "complete" | "asked" | "cancelled";
                        /** @constant */
                        success: true;
                        /** @constant */
                        type: "outcome";
                        usage: {
                            [key: string]: unknown;
                        };
                        waiting: {
                            [key: string]: unknown;
                        }[];
                    };
                };
            };
        };
    };
    post_ask_by_run_id_cancel: {
        parameters: {
            path: {
                run_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cancelled: boolean;
                        ended: boolean;
                        outcome: Record<string, never> | null;
                        run_id: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_ask_by_run_id_events: {
        parameters: {
            query?: {
                after?: number;
                vault?: string;
                wait?: number;
            };
            header?: {
                "Last-Event-ID"?: number;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["TaskEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    post_ask_context: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    added?: string[] | null;
                    auto_search?: boolean | null;
                    can?: ("add" | "delete" | "create" | "navigate")[] | null;
                    chat_history_length?: number | null;
                    /** @enum {string|null} */
                    editable?: "current" | "linked" | "context" | null;
                    excluded_folders?: string[] | null;
                    fetch_limit?: number | null;
                    include_same_folder?: boolean | null;
                    keyword_limit?: number | null;
                    link_depth?: number | null;
                    linked_notes?: number | null;
                    note?: string | null;
                    notes?: number | null;
                    orchestrate?: boolean | null;
                    orchestrator_steps?: number | null;
                    orchestrator_tokens?: number | null;
                    preset?: string | null;
                    rounds?: number | null;
                    rules?: {
                        can?: ("add" | "delete" | "create" | "navigate")[] | null;
                        /** @enum {string|null} */
                        editable?: "current" | "linked" | "context" | null;
                    } | null;
                    scope?: {
                        excluded_folders?: string[] | null;
                        include_same_folder?: boolean | null;
                        link_depth?: number | null;
                    } | null;
                    scout?: boolean | null;
                    semantic_notes?: number | null;
                    semantic_similarity?: number | null;
                    show_tags?: boolean | null;
                    snippet_limit?: number | null;
                    texts?: boolean | null;
                    timeout_s?: number | null;
                    toggles?: {
                        scout?: boolean | null;
                        task?: boolean | null;
                        web?: boolean | null;
                    } | null;
                    token_budget?: number | null;
                    token_limit?: number | null;
                    tools?: ("list_notes" | "search_keyword" | "search_semantic" | "search_task_relevant" | "fetch_note" | "get_links" | "get_links_recursive" | "view_all_notes" | "explore_vault" | "list_all_tags" | "ask_user")[] | null;
                    vault?: string | null;
                    web?: boolean | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cut: string | null;
                        explored: boolean;
                        limit: number;
                        notes: Record<string, never>[];
                        notices: string[];
                        removed: Record<string, never>[];
                        /** @constant */
                        success: true;
                        tokens: number;
                    };
                };
            };
        };
    };
    get_ask_defaults: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        can: string[];
                        choice: Record<string, never>;
                        editable: string[];
                        model: string;
                        problems: Record<string, never>;
                        ranges: {
                            [key: string]: number[];
                        };
                        /** @constant */
                        success: true;
                        switches: {
                            scout: boolean;
                            task: boolean;
                            web: boolean;
                        };
                        web: boolean;
                    };
                };
            };
        };
    };
    post_ask_stream: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    added?: string[] | null;
                    answer?: string | null;
                    auto_search?: boolean | null;
                    can?: ("add" | "delete" | "create" | "navigate")[] | null;
                    chat_history_length?: number | null;
                    debug?: boolean | null;
                    /** @enum {string|null} */
                    editable?: "current" | "linked" | "context" | null;
                    excluded_folders?: string[] | null;
                    fetch_limit?: number | null;
                    include_same_folder?: boolean | null;
                    keyword_limit?: number | null;
                    link_depth?: number | null;
                    linked_notes?: number | null;
                    model?: string | null;
                    note?: string | null;
                    notes?: number | null;
                    orchestrate?: boolean | null;
                    orchestrator_steps?: number | null;
                    orchestrator_tokens?: number | null;
                    preset?: string | null;
                    rounds?: number | null;
                    rules?: {
                        can?: ("add" | "delete" | "create" | "navigate")[] | null;
                        /** @enum {string|null} */
                        editable?: "current" | "linked" | "context" | null;
                    } | null;
                    run_id?: string | null;
                    scope?: {
                        excluded_folders?: string[] | null;
                        include_same_folder?: boolean | null;
                        link_depth?: number | null;
                    } | null;
                    scout?: boolean | null;
                    semantic_notes?: number | null;
                    semantic_similarity?: number | null;
                    session_id?: string | null;
                    show_tags?: boolean | null;
                    snippet_limit?: number | null;
                    task?: string | null;
                    timeout_s?: number | null;
                    toggles?: {
                        scout?: boolean | null;
                        task?: boolean | null;
                        web?: boolean | null;
                    } | null;
                    token_budget?: number | null;
                    token_limit?: number | null;
                    tools?: ("list_notes" | "search_keyword" | "search_semantic" | "search_task_relevant" | "fetch_note" | "get_links" | "get_links_recursive" | "view_all_notes" | "explore_vault" | "list_all_tags" | "ask_user")[] | null;
                    vault?: string | null;
                    wait?: number | null;
                    web?: boolean | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["TaskEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    put_ask_switches: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    scout?: boolean | null;
                    task?: boolean | null;
                    vault?: string | null;
                    web?: boolean | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        switches: {
                            scout: boolean;
                            task: boolean;
                            web: boolean;
                        };
                    };
                };
            };
        };
    };
    get_ask_waiting: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        results: {
                            at: string;
                            client: string;
                            note: string;
                            options: unknown[];
                            question: string;
                            run_id: string;
                            session_id: string;
                            task: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_attachments_by_path: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                path: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/pdf": string;
                    "audio/3gpp": string;
                    "audio/flac": string;
                    "audio/mp4": string;
                    "audio/mpeg": string;
                    "audio/ogg": string;
                    "audio/wav": string;
                    "image/avif": string;
                    "image/bmp": string;
                    "image/gif": string;
                    "image/jpeg": string;
                    "image/png": string;
                    "image/svg+xml": string;
                    "image/webp": string;
                    "video/mp4": string;
                    "video/ogg": string;
                    "video/quicktime": string;
                    "video/webm": string;
                    "video/x-matroska": string;
                };
            };
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/pdf": string;
                    "audio/3gpp": string;
                    "audio/flac": string;
                    "audio/mp4": string;
                    "audio/mpeg": string;
                    "audio/ogg": string;
                    "audio/wav": string;
                    "image/avif": string;
                    "image/bmp": string;
                    "image/gif": string;
                    "image/jpeg": string;
                    "image/png": string;
                    "image/svg+xml": string;
                    "image/webp": string;
                    "video/mp4": string;
                    "video/ogg": string;
                    "video/quicktime": string;
                    "video/webm": string;
                    "video/x-matroska": string;
                };
            };
        };
    };
    get_backlinks_by_path: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                vault?: string;
            };
            path: {
                path: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        path: string;
                        pending: number;
                        results: {
                            foreign?: boolean;
                            links: {
                                is_embed: boolean;
                                line: number;
                                text: string;
                            }[];
                            path: string;
                            title: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    get_blocks: {
        parameters: {
            query: {
                path: string;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        hash: string;
                        path: string;
                        results: {
                            after: string;
                            before: string;
                            id: string;
                            line: number;
                            problem?: string;
                            type: string | null;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_blocks_accept: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    dry_run?: boolean | null;
                    hash?: string | null;
                    ids: string[];
                    path: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "applied" | "planned";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_blocks_reject: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    dry_run?: boolean | null;
                    hash?: string | null;
                    ids: string[];
                    path: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "applied" | "planned";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_changes: {
        parameters: {
            query?: {
                client?: string;
                limit?: number;
                offset?: number;
                path?: string;
                proposal_id?: string;
                run?: string;
                since?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        next_offset?: number;
                        offset: number;
                        results: components["schemas"]["list_changes.ChangeRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_changes_by_change_id_undo: {
        parameters: {
            path: {
                change_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    /** @default false */
                    partial?: boolean;
                    /** @default  */
                    proposal_id?: string;
                    /** @default  */
                    reason?: string;
                    /** @default  */
                    run?: string;
                    /** @default  */
                    since?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        files: components["schemas"]["undo_change.WrittenFile"][];
                        left?: components["schemas"]["undo_change.UndoConflict"][];
                        notes?: string[];
                        /** @enum {string} */
                        status: "applied" | "planned";
                        success: boolean;
                        undone: string[];
                    };
                };
            };
        };
    };
    post_changes_undo: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default  */
                    change_id?: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default false */
                    partial?: boolean;
                    /** @default  */
                    proposal_id?: string;
                    /** @default  */
                    reason?: string;
                    /** @default  */
                    run?: string;
                    /** @default  */
                    since?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        files: components["schemas"]["undo_change.WrittenFile"][];
                        left?: components["schemas"]["undo_change.UndoConflict"][];
                        notes?: string[];
                        /** @enum {string} */
                        status: "applied" | "planned";
                        success: boolean;
                        undone: string[];
                    };
                };
            };
        };
    };
    post_chat: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    active_file?: string | null;
                    calls?: number | null;
                    cents?: number | null;
                    debug?: boolean | null;
                    message: string;
                    minutes?: number | null;
                    model?: string | null;
                    rounds?: number | null;
                    session_id?: string | null;
                    tokens?: number | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        changes: string[];
                        citations: Record<string, never>[];
                        model: string;
                        notes: unknown[];
                        proposals: Record<string, never>[];
                        question: {
                            options?: unknown[];
                            question?: string;
                        } | null;
                        removed: Record<string, never>[];
                        response: string;
                        session_id: string;
                        /** @enum {unknown} */
                        state: "complete" | "limit" | "asked" | "cancelled";
                        /** @constant */
                        success: true;
                        tools: Record<string, never>[];
                        turn_id: string;
                        usage: Record<string, never>;
                    };
                };
            };
        };
    };
    post_chat_by_turn_id_cancel: {
        parameters: {
            path: {
                turn_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cancelled: boolean;
                        ended: boolean;
                        session_id: string;
                        /** @constant */
                        success: true;
                        turn_id: string;
                    };
                };
            };
        };
    };
    get_chat_by_turn_id_events: {
        parameters: {
            query?: {
                after?: number;
                vault?: string;
                wait?: number;
            };
            header?: {
                "Last-Event-ID"?: number;
            };
            path: {
                turn_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["ChatEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    post_chat_stream: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    active_file?: string | null;
                    calls?: number | null;
                    cents?: number | null;
                    debug?: boolean | null;
                    message: string;
                    minutes?: number | null;
                    model?: string | null;
                    rounds?: number | null;
                    session_id?: string | null;
                    tokens?: number | null;
                    vault?: string | null;
                    wait?: number | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["ChatEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    get_clients: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        programs: {
                            /** @enum {string} */
                            credential: "own" | "api" | "page" | "none";
                            is_configured: boolean;
                            /** @enum {string} */
                            kind: "person" | "mcp" | "http" | "agent" | "script" | "named";
                            last_used: string | null;
                            name: string;
                            rights: {
                                capabilities: ("add" | "delete" | "create" | "navigate" | "move" | "properties")[];
                                hidden: string[];
                                is_read_only: boolean;
                                /** @enum {string} */
                                large: "apply" | "propose" | "refuse";
                                max_files: number;
                                read: string[];
                                read_only: string[];
                                /** @enum {string} */
                                scope: "all" | "current" | "linked" | "context";
                                /** @enum {string} */
                                small: "apply" | "propose" | "refuse";
                                vaults: string[];
                                write: string[];
                            };
                        }[];
                        results: {
                            device: string;
                            last_used: string | null;
                            /** @enum {unknown} */
                            made_by: "cli" | "page";
                            name: string;
                            paired: string;
                            revoked: string | null;
                            vault: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    delete_clients_by_name: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                name: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        revoked: {
                            device: string;
                            last_used: string | null;
                            /** @enum {unknown} */
                            made_by: "cli" | "page";
                            name: string;
                            paired: string;
                            revoked: string | null;
                            vault: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_clients_by_name_rights: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                name: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        config_file: string;
                        is_writable: boolean;
                        settings: {
                            choices?: string[];
                            default: string | number | string[] | null;
                            doc: string;
                            is_set: boolean;
                            /** @enum {string} */
                            kind: "text" | "verbatim" | "path" | "url" | "count" | "choice" | "texts";
                            least?: number;
                            most?: number;
                            name: string;
                            restart: boolean;
                            savable: boolean;
                            secret: boolean;
                            source: string;
                            value: string | number | string[] | null;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    put_clients_by_name_rights: {
        parameters: {
            path: {
                name: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    values: {
                        /** @enum {string|null} */
                        access?: "write" | "read" | null;
                        capabilities?: ("add" | "delete" | "create" | "navigate" | "move" | "properties")[] | null;
                        /** @enum {string|null} */
                        confirm?: "ask" | "propose" | null;
                        guarded?: string[] | null;
                        hidden?: string[] | null;
                        /** @enum {string|null} */
                        large?: "apply" | "propose" | "refuse" | null;
                        max_files?: number | null;
                        read?: string[] | null;
                        read_only?: string[] | null;
                        /** @enum {string|null} */
                        scope?: "all" | "current" | "linked" | "context" | null;
                        /** @enum {string|null} */
                        small?: "apply" | "propose" | "refuse" | null;
                        vaults?: string[] | null;
                        write?: string[] | null;
                    };
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        config_file: string;
                        is_writable: boolean;
                        settings: {
                            choices?: string[];
                            default: string | number | string[] | null;
                            doc: string;
                            is_set: boolean;
                            /** @enum {string} */
                            kind: "text" | "verbatim" | "path" | "url" | "count" | "choice" | "texts";
                            least?: number;
                            most?: number;
                            name: string;
                            restart: boolean;
                            savable: boolean;
                            secret: boolean;
                            source: string;
                            value: string | number | string[] | null;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_events: {
        parameters: {
            query?: {
                after?: number;
                vault?: string;
                wait?: number;
            };
            header?: {
                "Last-Event-ID"?: number;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["FeedEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    post_graph: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string|null} */
                    by?: "links" | "meaning" | "both" | null;
                    paths: string[];
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        /** @enum {string} */
                        by: "links" | "meaning" | "both";
                        edges: {
                            cosine?: number;
                            /** @enum {string} */
                            kind: "link" | "meaning";
                            source: number;
                            target: number;
                        }[];
                        index_incomplete: boolean;
                        index_stale: boolean;
                        is_complete: boolean;
                        missing: number;
                        nodes: {
                            depth: number;
                            foreign?: boolean;
                            path: string;
                            tags: string[];
                            title: string;
                        }[];
                        notes?: string[];
                        pending: number;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_graph_by_path: {
        parameters: {
            query?: {
                by?: "links" | "meaning" | "both" | null;
                depth?: number;
                limit?: number;
                vault?: string;
            };
            path: {
                path: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        /** @enum {string} */
                        by: "links" | "meaning" | "both";
                        depth: number;
                        edges: {
                            cosine?: number;
                            /** @enum {string} */
                            kind: "link" | "meaning";
                            source: number;
                            target: number;
                        }[];
                        index_incomplete: boolean;
                        index_stale: boolean;
                        is_complete: boolean;
                        limit: number;
                        nodes: {
                            depth: number;
                            foreign?: boolean;
                            path: string;
                            tags: string[];
                            title: string;
                        }[];
                        notes?: string[];
                        path: string;
                        pending: number;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_health: {
        parameters: {
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        instance: string;
                        /** @constant */
                        product: "knapper";
                        readers: number;
                        /** @constant */
                        status: "ok";
                        /** @constant */
                        success: true;
                        version: string;
                    };
                };
            };
        };
    };
    get_history: {
        parameters: {
            query?: {
                before?: string;
                client?: string;
                kind?: "asked" | "found" | "scheduled" | "proposed" | "accepted" | "rejected" | "changed" | "undone" | "refused" | null;
                limit?: number;
                note?: string;
                run?: string;
                since?: string;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        more: boolean;
                        next: string;
                        notes: string[];
                        results: {
                            at: string;
                            change_id?: string;
                            changes?: string[];
                            client: string;
                            cost_usd?: number;
                            id: string;
                            /** @enum {string} */
                            kind: "asked" | "found" | "scheduled" | "proposed" | "accepted" | "rejected" | "changed" | "undone" | "refused";
                            model?: string;
                            note_count?: number;
                            notes?: string[];
                            proposal_id?: string;
                            proposals?: string[];
                            run_id?: string;
                            schedule?: string;
                            session_id?: string;
                            state?: string;
                            text?: string;
                            times?: number;
                            tokens?: number;
                            undated?: boolean;
                            work: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_index: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    embed?: boolean | null;
                    full?: boolean | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        job_id: string;
                        joined: boolean;
                        /** @constant */
                        success: true;
                        vault: string;
                    };
                };
            };
        };
    };
    post_index_by_job_id_cancel: {
        parameters: {
            path: {
                job_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cancelled: boolean;
                        ended: boolean;
                        job_id: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_index_by_job_id_events: {
        parameters: {
            query?: {
                after?: number;
                vault?: string;
                wait?: number;
            };
            header?: {
                "Last-Event-ID"?: number;
            };
            path: {
                job_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["IndexEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    get_models: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        configured: string;
                        results: {
                            has_key: boolean;
                            is_local: boolean;
                            name: string;
                            price: {
                                input_usd: number;
                                output_usd: number;
                            } | null;
                            provider: string;
                            /** @enum {string} */
                            use: "main" | "fallback" | "scout";
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_models_keys: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        has_keyring: boolean;
                        results: {
                            /** @enum {string} */
                            place: "settings" | "keyring" | "none";
                            provider: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    put_models_keys: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    key?: string | null;
                    provider: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        place: "settings" | "keyring" | "none";
                        provider: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_models_offered: {
        parameters: {
            query: {
                provider: "openai" | "anthropic" | "fireworks" | "openrouter" | "ollama";
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        models: string[];
                        /** @enum {string} */
                        state: "ok" | "no_key" | "refused" | "unknown_model" | "unreachable" | "unusable";
                        /** @constant */
                        success: true;
                        text: string;
                    };
                };
            };
        };
    };
    post_models_trial: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    model?: string | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        model: string;
                        problem: {
                            code: string;
                            error: string;
                            hint: string;
                        } | null;
                        seconds: number;
                        spent: {
                            cost_usd: number | null;
                            input_tokens: number;
                            output_tokens: number;
                            requests: number;
                            total_tokens: number;
                        };
                        /** @constant */
                        success: true;
                        text: string;
                    };
                };
            };
        };
    };
    get_notes_by_path: {
        parameters: {
            query?: {
                expand_embeds?: boolean;
                heading?: string;
                length?: number;
                line_numbers?: boolean;
                offset?: number;
            };
            header?: {
                "If-None-Match"?: string;
            };
            path: {
                path: string;
            };
        };
        responses: {
            200: {
                headers: {
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        content: string;
                        embeds?: components["schemas"]["read_file.EmbedContent"][];
                        end_line: number;
                        foreign?: boolean;
                        hash: string;
                        next_offset?: number;
                        offset: number;
                        path: string;
                        pending?: components["schemas"]["read_file.PendingEdit"][];
                        problems?: components["schemas"]["read_file.NoteProblem"][];
                        start_line: number;
                        success: boolean;
                        total_chars: number;
                        truncated: boolean;
                    };
                };
            };
        };
    };
    post_pair: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    code: string;
                    device?: string | null;
                    name?: string | null;
                };
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        instance: string;
                        name: string;
                        /** @constant */
                        product: "knapper";
                        /** @constant */
                        success: true;
                        token: string;
                        vault: string;
                        version: string;
                    };
                };
            };
        };
    };
    post_pair_codes: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    address?: string | null;
                    name?: string | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        address: string;
                        code: string;
                        expires_s: number;
                        link: string;
                        name: string;
                        qr: string[] | null;
                        /** @constant */
                        success: true;
                        vault: string;
                    };
                };
            };
        };
    };
    get_presets: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        results: {
                            added: string[];
                            name: string;
                            rules: {
                                can: ("add" | "delete" | "create" | "navigate")[];
                                /** @enum {string} */
                                editable: "current" | "linked" | "context";
                            };
                            scope: {
                                excluded_folders: string[];
                                include_same_folder: boolean;
                                link_depth: number;
                            };
                            toggles: {
                                scout: boolean;
                                task: boolean;
                                web: boolean;
                            };
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    put_presets_by_name: {
        parameters: {
            path: {
                name: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    added?: string[] | null;
                    rules?: {
                        can?: ("add" | "delete" | "create" | "navigate")[] | null;
                        /** @enum {string|null} */
                        editable?: "current" | "linked" | "context" | null;
                    } | null;
                    scope?: {
                        excluded_folders?: string[] | null;
                        include_same_folder?: boolean | null;
                        link_depth?: number | null;
                    } | null;
                    toggles?: {
                        scout?: boolean | null;
                        task?: boolean | null;
                        web?: boolean | null;
                    } | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        notes: string[];
                        preset: {
                            added: string[];
                            name: string;
                            rules: {
                                can: ("add" | "delete" | "create" | "navigate")[];
                                /** @enum {string} */
                                editable: "current" | "linked" | "context";
                            };
                            scope: {
                                excluded_folders: string[];
                                include_same_folder: boolean;
                                link_depth: number;
                            };
                            toggles: {
                                scout: boolean;
                                task: boolean;
                                web: boolean;
                            };
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    delete_presets_by_name: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                name: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        deleted: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_proposals: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                path?: string;
                status?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        next_offset?: number;
                        offset: number;
                        results: components["schemas"]["list_proposals.ProposalRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    get_proposals_by_proposal_id: {
        parameters: {
            path: {
                proposal_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_ids?: string[];
                        client: string;
                        created: string;
                        decided_at?: string;
                        decided_by?: string;
                        digest: string;
                        expires: string;
                        files: components["schemas"]["show_proposal.ProposalFile"][];
                        folders?: components["schemas"]["show_proposal.FolderMove"][];
                        id: string;
                        links_rewritten?: components["schemas"]["show_proposal.RewrittenLink"][];
                        notes?: string[];
                        reason?: string;
                        rejection?: string;
                        review_command?: string;
                        review_url?: string;
                        run?: string;
                        /** @enum {string} */
                        status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                        success: boolean;
                        superseded_by?: string;
                        tainted?: boolean;
                        /** @enum {string} */
                        undone?: "all" | "part";
                        undone_by?: string[];
                        why?: string;
                    };
                };
            };
        };
    };
    post_proposals_by_proposal_id_accept: {
        parameters: {
            path: {
                proposal_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    digest: string;
                    /** @default [] */
                    files?: string[];
                    /** @default [] */
                    hunks?: string[];
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["accept_proposal.RequestFailure"][];
                        files?: components["schemas"]["accept_proposal.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["accept_proposal.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["accept_proposal.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_proposals_by_proposal_id_applied: {
        parameters: {
            path: {
                proposal_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    hunks: string[];
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        id: string;
                        status: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_proposals_by_proposal_id_draw: {
        parameters: {
            path: {
                proposal_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    dry_run?: boolean | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "applied" | "planned";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    put_proposals_by_proposal_id_hunks_by_hunk: {
        parameters: {
            path: {
                hunk: string;
                proposal_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    digest: string;
                    new_text: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        change_ids?: string[];
                        client: string;
                        created: string;
                        decided_at?: string;
                        decided_by?: string;
                        digest: string;
                        expires: string;
                        files: components["schemas"]["edit_proposal.ProposalFile"][];
                        folders?: components["schemas"]["edit_proposal.FolderMove"][];
                        id: string;
                        links_rewritten?: components["schemas"]["edit_proposal.RewrittenLink"][];
                        notes?: string[];
                        reason?: string;
                        rejection?: string;
                        review_command?: string;
                        review_url?: string;
                        run?: string;
                        /** @enum {string} */
                        status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                        success: boolean;
                        superseded_by?: string;
                        tainted?: boolean;
                        /** @enum {string} */
                        undone?: "all" | "part";
                        undone_by?: string[];
                        why?: string;
                    };
                };
            };
        };
    };
    post_proposals_by_proposal_id_reject: {
        parameters: {
            path: {
                proposal_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default [] */
                    files?: string[];
                    /** @default [] */
                    hunks?: string[];
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        files?: string[];
                        hunks?: string[];
                        id: string;
                        reason: string;
                        status: ("open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded") | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    get_runs: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        offset: number;
                        results: {
                            also: string[];
                            asks: number;
                            client: string;
                            code_mode: boolean;
                            created: string;
                            id: string;
                            is_live: boolean;
                            limits: {
                                cents: number;
                                depth: number;
                                nodes: number;
                                parallel: number;
                                seconds: number;
                                tokens: number;
                            };
                            model: string;
                            reasons: string[];
                            /** @enum {string} */
                            state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                            strategy: string;
                            task: string;
                            updated: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_runs: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    also?: string[] | null;
                    cents?: number | null;
                    code_mode?: boolean | null;
                    depth?: number | null;
                    fresh?: boolean | null;
                    minutes?: number | null;
                    model?: string | null;
                    nodes?: number | null;
                    /** @enum {string|null} */
                    profile?: "strict" | "local" | "extended" | null;
                    strategy?: string | null;
                    task: string;
                    tokens?: number | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        also: string[];
                        client: string;
                        code_mode: boolean;
                        created: string;
                        id: string;
                        is_live: boolean;
                        limits: {
                            cents: number;
                            depth: number;
                            nodes: number;
                            parallel: number;
                            seconds: number;
                            tokens: number;
                        };
                        model: string;
                        reasons: string[];
                        /** @enum {string} */
                        state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                        strategy: string;
                        /** @constant */
                        success: true;
                        task: string;
                        updated: string;
                    };
                };
            };
        };
    };
    get_runs_by_run_id: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        also: string[];
                        answer: string;
                        cached: number;
                        checkpoints: {
                            answer: string;
                            id: string;
                            node_id: string;
                            options: string[];
                            question: string;
                            /** @constant */
                            type: "checkpoint";
                            unattended: boolean;
                        }[];
                        citations: {
                            end_line: number;
                            hash: string;
                            heading: string;
                            path: string;
                            start_line: number;
                            vault: string;
                        }[];
                        client: string;
                        code_mode: boolean;
                        created: string;
                        id: string;
                        is_live: boolean;
                        limits: {
                            cents: number;
                            depth: number;
                            nodes: number;
                            parallel: number;
                            seconds: number;
                            tokens: number;
                        };
                        model: string;
                        node_count: number;
                        nodes: {
                            cached: boolean;
                            children: string[];
                            citation_count: number;
                            cost_usd: number | null;
                            depth: number;
                            id: string;
                            parent: string;
                            reason: string;
                            score: number | null;
                            spans: {
                                doing: string;
                                ended: string | null;
                                started: string;
                            }[];
                            /** @enum {string} */
                            state: "pending" | "running" | "done" | "partial" | "failed" | "blocked" | "cut";
                            tier: string;
                            title: string;
                            tokens: number;
                        }[];
                        reasons: string[];
                        removed: {
                            citation: string;
                            reason: string;
                        }[];
                        /** @enum {string} */
                        state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                        strategy: string;
                        /** @constant */
                        success: true;
                        task: string;
                        updated: string;
                        usage: {
                            cost_usd: number | null;
                            input_tokens: number;
                            output_tokens: number;
                            requests: number;
                            total_tokens: number;
                        };
                    };
                };
            };
        };
    };
    delete_runs_by_run_id: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        deleted: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_runs_by_run_id_cancel: {
        parameters: {
            path: {
                run_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cancelled: boolean;
                        ended: boolean;
                        id: string;
                        /** @enum {string} */
                        state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_runs_by_run_id_checkpoints_by_checkpoint_id: {
        parameters: {
            path: {
                checkpoint_id: string;
                run_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    answer: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: Record<string, never>;
                        id: string;
                        node: string;
                        run: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_runs_by_run_id_events: {
        parameters: {
            query?: {
                after?: number;
                vault?: string;
                wait?: number;
            };
            header?: {
                "Last-Event-ID"?: number;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["RunEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    post_runs_by_run_id_export: {
        parameters: {
            path: {
                run_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    to: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "applied" | "proposed";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_runs_by_run_id_nodes_by_node_id: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                node_id: string;
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: string;
                        cached: boolean;
                        checkpoint: {
                            answer: string;
                            options: string[];
                            question: string;
                            unattended: boolean;
                        } | null;
                        children: string[];
                        citation_count: number;
                        citations: {
                            end_line: number;
                            hash: string;
                            heading: string;
                            path: string;
                            start_line: number;
                            vault: string;
                        }[];
                        cost_usd: number | null;
                        depth: number;
                        hard: string[];
                        high_impact: boolean;
                        id: string;
                        /** @enum {string} */
                        impact: "none" | "security" | "data_model" | "architecture" | "contract";
                        notes: string[];
                        parent: string;
                        reason: string;
                        removed: {
                            citation: string;
                            reason: string;
                        }[];
                        retrieval: {
                            attempts: {
                                [key: string]: unknown;
                            }[];
                            confidence: number;
                            context_chars: number;
                            notes: string[];
                            parts: {
                                [key: string]: number;
                            };
                            score: number;
                            script: string;
                            sources: {
                                end_line: number;
                                hash: string;
                                path: string;
                                start_line: number;
                                vault: string;
                            }[];
                            tier: string;
                        } | null;
                        score: number | null;
                        soft: string[];
                        sources: {
                            end_line: number;
                            hash: string;
                            path: string;
                            start_line: number;
                            vault: string;
                        }[];
                        spans: {
                            doing: string;
                            ended: string | null;
                            started: string;
                        }[];
                        /** @enum {string} */
                        state: "pending" | "running" | "done" | "partial" | "failed" | "blocked" | "cut";
                        /** @constant */
                        success: true;
                        task: string;
                        tier: string;
                        title: string;
                        tokens: number;
                        usage: {
                            cost_usd: number | null;
                            input_tokens: number;
                            output_tokens: number;
                            requests: number;
                            total_tokens: number;
                        };
                        why: string;
                    };
                };
            };
        };
    };
    get_runs_by_run_id_notes: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        id: string;
                        notes: {
                            nodes: string[];
                            path: string;
                            /** @enum {string} */
                            use: "cited" | "found" | "read";
                            vault: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_runs_by_run_id_resume: {
        parameters: {
            path: {
                run_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    cents?: number | null;
                    depth?: number | null;
                    minutes?: number | null;
                    nodes?: number | null;
                    replay?: string | null;
                    tokens?: number | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        also: string[];
                        client: string;
                        code_mode: boolean;
                        created: string;
                        id: string;
                        is_live: boolean;
                        limits: {
                            cents: number;
                            depth: number;
                            nodes: number;
                            parallel: number;
                            seconds: number;
                            tokens: number;
                        };
                        model: string;
                        reasons: string[];
                        /** @enum {string} */
                        state: "pending" | "running" | "complete" | "partial" | "failed" | "cancelled" | "interrupted";
                        strategy: string;
                        /** @constant */
                        success: true;
                        task: string;
                        updated: string;
                    };
                };
            };
        };
    };
    get_runs_by_run_id_stale: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                run_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        id: string;
                        stale: {
                            [key: string]: string[];
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_runs_options: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        code_mode: boolean;
                        limits: {
                            [key: string]: number;
                        };
                        model: string | null;
                        model_hint: string;
                        profiles: string[];
                        ranges: {
                            [key: string]: {
                                least: number;
                                most: number;
                            };
                        };
                        sandbox_hint: string;
                        sandbox_ready: boolean | null;
                        strategies: {
                            name: string;
                            own: boolean;
                            summary: string;
                        }[];
                        strategy: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_schedules: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        now: string;
                        results: {
                            agent: string;
                            apply: boolean;
                            at: string;
                            /** @enum {string} */
                            cadence: "daily" | "weekly" | "changed";
                            client: string;
                            folder: string;
                            last: {
                                at: string;
                                cancelled: boolean;
                                changes: number;
                                note: string;
                                proposals: number;
                                reason: string;
                                session_id: string;
                                /** @enum {string} */
                                state: "running" | "complete" | "limit" | "asked" | "failed" | "interrupted" | "cancelled" | "held" | "nothing";
                                tokens: number;
                            } | null;
                            max_open: number;
                            minutes: number;
                            name: string;
                            next: string | null;
                            paused: boolean;
                            results: string;
                            runs: string[];
                            tokens: number;
                            /** @enum {string} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                            when: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_schedules: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    agent: string;
                    apply?: boolean | null;
                    at?: string | null;
                    /** @enum {string|null} */
                    cadence?: "daily" | "weekly" | "changed" | null;
                    client?: string | null;
                    folder?: string | null;
                    max_open?: number | null;
                    minutes?: number | null;
                    name?: string | null;
                    paused?: boolean | null;
                    results?: string | null;
                    tokens?: number | null;
                    vault?: string | null;
                    /** @enum {string|null} */
                    weekday?: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday" | null;
                };
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedule: {
                            agent: string;
                            apply: boolean;
                            at: string;
                            /** @enum {string} */
                            cadence: "daily" | "weekly" | "changed";
                            client: string;
                            folder: string;
                            last: {
                                at: string;
                                cancelled: boolean;
                                changes: number;
                                note: string;
                                proposals: number;
                                reason: string;
                                session_id: string;
                                /** @enum {string} */
                                state: "running" | "complete" | "limit" | "asked" | "failed" | "interrupted" | "cancelled" | "held" | "nothing";
                                tokens: number;
                            } | null;
                            max_open: number;
                            minutes: number;
                            name: string;
                            next: string | null;
                            paused: boolean;
                            results: string;
                            runs: string[];
                            tokens: number;
                            /** @enum {string} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                            when: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    delete_schedules_by_name: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                name: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        deleted: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    patch_schedules_by_name: {
        parameters: {
            path: {
                name: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    agent?: string | null;
                    apply?: boolean | null;
                    at?: string | null;
                    /** @enum {string|null} */
                    cadence?: "daily" | "weekly" | "changed" | null;
                    client?: string | null;
                    folder?: string | null;
                    max_open?: number | null;
                    minutes?: number | null;
                    paused?: boolean | null;
                    results?: string | null;
                    tokens?: number | null;
                    vault?: string | null;
                    /** @enum {string|null} */
                    weekday?: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday" | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedule: {
                            agent: string;
                            apply: boolean;
                            at: string;
                            /** @enum {string} */
                            cadence: "daily" | "weekly" | "changed";
                            client: string;
                            folder: string;
                            last: {
                                at: string;
                                cancelled: boolean;
                                changes: number;
                                note: string;
                                proposals: number;
                                reason: string;
                                session_id: string;
                                /** @enum {string} */
                                state: "running" | "complete" | "limit" | "asked" | "failed" | "interrupted" | "cancelled" | "held" | "nothing";
                                tokens: number;
                            } | null;
                            max_open: number;
                            minutes: number;
                            name: string;
                            next: string | null;
                            paused: boolean;
                            results: string;
                            runs: string[];
                            tokens: number;
                            /** @enum {string} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                            when: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_schedules_by_name_cancel: {
        parameters: {
            path: {
                name: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedule: {
                            agent: string;
                            apply: boolean;
                            at: string;
                            /** @enum {string} */
                            cadence: "daily" | "weekly" | "changed";
                            client: string;
                            folder: string;
                            last: {
                                at: string;
                                cancelled: boolean;
                                changes: number;
                                note: string;
                                proposals: number;
                                reason: string;
                                session_id: string;
                                /** @enum {string} */
                                state: "running" | "complete" | "limit" | "asked" | "failed" | "interrupted" | "cancelled" | "held" | "nothing";
                                tokens: number;
                            } | null;
                            max_open: number;
                            minutes: number;
                            name: string;
                            next: string | null;
                            paused: boolean;
                            results: string;
                            runs: string[];
                            tokens: number;
                            /** @enum {string} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                            when: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_schedules_by_name_run: {
        parameters: {
            path: {
                name: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedule: {
                            agent: string;
                            apply: boolean;
                            at: string;
                            /** @enum {string} */
                            cadence: "daily" | "weekly" | "changed";
                            client: string;
                            folder: string;
                            last: {
                                at: string;
                                cancelled: boolean;
                                changes: number;
                                note: string;
                                proposals: number;
                                reason: string;
                                session_id: string;
                                /** @enum {string} */
                                state: "running" | "complete" | "limit" | "asked" | "failed" | "interrupted" | "cancelled" | "held" | "nothing";
                                tokens: number;
                            } | null;
                            max_open: number;
                            minutes: number;
                            name: string;
                            next: string | null;
                            paused: boolean;
                            results: string;
                            runs: string[];
                            tokens: number;
                            /** @enum {string} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                            when: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_schedules_options: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agents: {
                            name: string;
                            summary: string;
                            title: string;
                        }[];
                        clients: string[];
                        defaults: {
                            at: string;
                            client: string;
                            max_open: number;
                            minutes: number;
                            results: string;
                            tokens: number;
                            /** @enum {unknown} */
                            weekday: "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
                        };
                        problems: {
                            error: string;
                            hint: string;
                            name: string;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_search: {
        parameters: {
            query: {
                created_from?: string;
                created_to?: string;
                exclude_folders?: string[];
                exclude_tags?: string[];
                explain?: boolean;
                folders?: string[];
                include_log?: boolean;
                mode?: "hybrid" | "semantic" | "keyword";
                modified_from?: string;
                modified_to?: string;
                n_results?: number;
                per_note?: number;
                properties?: string[];
                query: string;
                tags?: string[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        message?: string;
                        nearest?: components["schemas"]["search_vault.PassageHit"][];
                        notes?: string[];
                        pending: number;
                        results: components["schemas"]["search_vault.PassageHit"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    get_sessions: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                query?: string;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        offset: number;
                        results: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_sessions: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    active_file?: string | null;
                    title?: string | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        session: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_sessions_by_session_id: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                vault?: string;
            };
            path: {
                session_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        messages: {
                            active_file?: string | null;
                            at: string;
                            content: string;
                            number: number;
                            outcome?: {
                                [key: string]: unknown;
                            };
                            /** @enum {string} */
                            role: "user" | "assistant";
                        }[];
                        offset: number;
                        session: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        };
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    delete_sessions_by_session_id: {
        parameters: {
            query?: {
                vault?: string;
            };
            path: {
                session_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        deleted: string;
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    patch_sessions_by_session_id: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    title: string;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        session: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_sessions_by_session_id_chat: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    active_file?: string | null;
                    calls?: number | null;
                    cents?: number | null;
                    debug?: boolean | null;
                    message: string;
                    minutes?: number | null;
                    model?: string | null;
                    rounds?: number | null;
                    tokens?: number | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        changes: string[];
                        citations: Record<string, never>[];
                        model: string;
                        notes: unknown[];
                        proposals: Record<string, never>[];
                        question: {
                            options?: unknown[];
                            question?: string;
                        } | null;
                        removed: Record<string, never>[];
                        response: string;
                        session_id: string;
                        /** @enum {unknown} */
                        state: "complete" | "limit" | "asked" | "cancelled";
                        /** @constant */
                        success: true;
                        tools: Record<string, never>[];
                        turn_id: string;
                        usage: Record<string, never>;
                    };
                };
            };
        };
    };
    post_sessions_by_session_id_chat_stream: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    active_file?: string | null;
                    calls?: number | null;
                    cents?: number | null;
                    debug?: boolean | null;
                    message: string;
                    minutes?: number | null;
                    model?: string | null;
                    rounds?: number | null;
                    tokens?: number | null;
                    vault?: string | null;
                    wait?: number | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                        events: {
                            data: components["schemas"]["ChatEvent"];
                            event: string;
                            id: number;
                        }[];
                        last: number;
                        /** @constant */
                        success: true;
                    };
                    "text/event-stream": {
                        data: string;
                        event: string;
                        id: string;
                    };
                };
            };
        };
    };
    post_sessions_by_session_id_clear: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        session: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_sessions_by_session_id_export: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    path?: string | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "applied" | "proposed";
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    post_sessions_by_session_id_fork: {
        parameters: {
            path: {
                session_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": {
                    upto?: number | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        session: {
                            active_file: string | null;
                            busy: boolean;
                            client: string;
                            created: string;
                            forked_from: string | null;
                            id: string;
                            /** @enum {string} */
                            kind: "file" | "none" | "own";
                            running: string | null;
                            task: string | null;
                            title: string;
                            turns: number;
                            updated: string;
                        };
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_sessions_by_session_id_trace: {
        parameters: {
            query: {
                number: number;
                vault?: string;
            };
            path: {
                session_id: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        number: number;
                        /** @constant */
                        success: true;
                        trace: {
                            answer?: unknown;
                            arguments?: unknown;
                            cut?: string[];
                            id?: string;
                            /** @enum {unknown} */
                            kind: "text" | "call" | "round";
                            limit?: number;
                            name?: string;
                            number?: number;
                            success?: boolean | null;
                            summary?: string;
                            text?: string;
                        }[];
                    };
                };
            };
        };
    };
    get_settings: {
        parameters: {
            query?: {
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        config_file: string;
                        settings: {
                            choices?: string[];
                            default: string | number | string[] | null;
                            doc: string;
                            is_set: boolean;
                            /** @enum {string} */
                            kind: "text" | "verbatim" | "path" | "url" | "count" | "choice" | "texts";
                            least?: number;
                            most?: number;
                            name: string;
                            restart: boolean;
                            savable: boolean;
                            secret: boolean;
                            source: string;
                            value: string | number | string[] | null;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    put_settings: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    values: {
                        "agents.can"?: ("add" | "delete" | "create" | "navigate")[] | null;
                        "agents.chat_history_length"?: number | null;
                        /** @enum {string|null} */
                        "agents.editable"?: "current" | "linked" | "context" | null;
                        "agents.excluded_folders"?: string[] | null;
                        "agents.link_depth"?: number | null;
                        "agents.linked_notes"?: number | null;
                        /** @enum {string|null} */
                        "agents.orchestrate"?: "off" | "on" | null;
                        "agents.orchestrator_steps"?: number | null;
                        "agents.orchestrator_tokens"?: number | null;
                        /** @enum {string|null} */
                        "agents.same_folder"?: "off" | "on" | null;
                        /** @enum {string|null} */
                        "agents.scout"?: "off" | "on" | null;
                        "agents.semantic_notes"?: number | null;
                        "agents.semantic_similarity"?: number | null;
                        /** @enum {string|null} */
                        "agents.task"?: "off" | "on" | null;
                        "agents.token_limit"?: number | null;
                        /** @enum {string|null} */
                        "agents.web"?: "off" | "on" | null;
                        /** @enum {string|null} */
                        "audio.access"?: "auto" | "off" | "local" | "on" | null;
                        "audio.api_key"?: string | null;
                        "audio.base_url"?: string | null;
                        "audio.language"?: string | null;
                        "audio.max_mb"?: number | null;
                        "audio.model"?: string | null;
                        /** @enum {string|null} */
                        "audio.provider"?: "auto" | "fireworks" | "openai" | "server" | "whisper" | null;
                        "audio.timeout_s"?: number | null;
                        default_vault?: string | null;
                        "embeddings.api_key"?: string | null;
                        "embeddings.base_url"?: string | null;
                        "embeddings.folder"?: string | null;
                        /** @enum {string|null} */
                        "embeddings.kind"?: "static" | "e5" | "endpoint" | "onnx" | "none" | null;
                        "embeddings.model"?: string | null;
                        "embeddings.passage_prefix"?: string | null;
                        "embeddings.query_prefix"?: string | null;
                        /** @enum {string|null} */
                        "git.commit"?: "no" | "yes" | null;
                        "index.engine"?: string | null;
                        "index.interval_minutes"?: number | null;
                        "index.password"?: string | null;
                        "index.readers"?: string[] | null;
                        "journal.backup_mb"?: number | null;
                        "journal.max_age_days"?: number | null;
                        "journal.max_mb"?: number | null;
                        "model.anthropic_api_key"?: string | null;
                        "model.api_key"?: string | null;
                        "model.base_url"?: string | null;
                        "model.context_tokens"?: number | null;
                        "model.day_cents"?: number | null;
                        "model.day_tokens"?: number | null;
                        "model.fallbacks"?: string[] | null;
                        "model.fireworks_api_key"?: string | null;
                        "model.name"?: string | null;
                        "model.ollama_url"?: string | null;
                        "model.openai_api_key"?: string | null;
                        "model.openrouter_api_key"?: string | null;
                        "model.prompt"?: string | null;
                        "model.retries"?: number | null;
                        "model.run_tokens"?: number | null;
                        "model.session_days"?: number | null;
                        "model.sessions_mb"?: number | null;
                        /** @enum {string|null} */
                        "model.telemetry"?: "off" | "on" | null;
                        "model.timeout_s"?: number | null;
                        /** @enum {string|null} */
                        "model.tools"?: "auto" | "full" | "essential" | null;
                        "model.turn_calls"?: number | null;
                        "model.turn_cents"?: number | null;
                        "model.turn_minutes"?: number | null;
                        "model.turn_rounds"?: number | null;
                        "model.turn_tokens"?: number | null;
                        "proposals.expire_days"?: number | null;
                        "proposals.taint_minutes"?: number | null;
                        "rerank.api_key"?: string | null;
                        "rerank.base_url"?: string | null;
                        "rerank.folder"?: string | null;
                        /** @enum {string|null} */
                        "rerank.kind"?: "off" | "endpoint" | "onnx" | null;
                        "rerank.model"?: string | null;
                        "rerank.passages"?: number | null;
                        "rerank.timeout_s"?: number | null;
                        "runs.cents"?: number | null;
                        /** @enum {string|null} */
                        "runs.code_mode"?: "on" | "off" | null;
                        "runs.days"?: number | null;
                        "runs.depth"?: number | null;
                        "runs.low_confidence_percent"?: number | null;
                        "runs.low_score_percent"?: number | null;
                        "runs.min_citations"?: number | null;
                        "runs.min_context_chars"?: number | null;
                        "runs.minutes"?: number | null;
                        "runs.nodes"?: number | null;
                        "runs.parallel"?: number | null;
                        "runs.regens_per_node"?: number | null;
                        "runs.regens_per_run"?: number | null;
                        "runs.strategy"?: string | null;
                        "runs.tokens"?: number | null;
                        "scout.keyword_limit"?: number | null;
                        "scout.model"?: string | null;
                        "scout.notes"?: number | null;
                        "scout.rounds"?: number | null;
                        /** @enum {string|null} */
                        "scout.show_tags"?: "off" | "on" | null;
                        "scout.timeout_s"?: number | null;
                        "scout.tools"?: ("list_notes" | "search_keyword" | "search_semantic" | "search_task_relevant" | "fetch_note" | "get_links" | "get_links_recursive" | "view_all_notes" | "explore_vault" | "list_all_tags" | "ask_user")[] | null;
                        "scripts.fs_read"?: string[] | null;
                        "scripts.memory_mb"?: number | null;
                        "scripts.net_allow"?: string[] | null;
                        "scripts.result_kb"?: number | null;
                        "scripts.timeout_s"?: number | null;
                        /** @enum {string|null} */
                        "scripts.walls"?: "required" | "best" | null;
                        "scripts.workers"?: number | null;
                        /** @enum {string|null} */
                        "search.fusion"?: "convex" | "rrf" | null;
                        "search.meaning_percent"?: number | null;
                        /** @enum {string|null} */
                        "search.rewrite"?: "off" | "on" | null;
                        /** @enum {string|null} */
                        "server.answers_commands"?: "no" | "yes" | null;
                        "server.host"?: string | null;
                        "server.hosts"?: string[] | null;
                        "server.max_body_mb"?: number | null;
                        /** @enum {string|null} */
                        "server.mcp_output_schemas"?: "off" | "on" | null;
                        /** @enum {string|null} */
                        "server.mcp_profile"?: "standard" | "essential" | "full" | "read-only" | null;
                        "server.origins"?: string[] | null;
                        "server.port"?: number | null;
                        "server.public_url"?: string | null;
                        /** @enum {string|null} */
                        "server.readers"?: "auto" | "0" | "1" | "2" | "3" | "4" | "6" | "8" | "12" | "16" | null;
                        "server.requests_per_minute"?: number | null;
                        "server.stop_seconds"?: number | null;
                        "server.threads"?: number | null;
                        "server.token"?: string | null;
                        state_dir?: string | null;
                        /** @enum {string|null} */
                        "web.access"?: "off" | "on" | null;
                        "web.api_key"?: string | null;
                        /** @enum {string|null} */
                        "web.auto_search"?: "off" | "on" | null;
                        "web.base_url"?: string | null;
                        "web.brave_api_key"?: string | null;
                        "web.hosts"?: string[] | null;
                        "web.max_page_kb"?: number | null;
                        "web.max_pages"?: number | null;
                        "web.max_results"?: number | null;
                        "web.model"?: string | null;
                        /** @enum {string|null} */
                        "web.provider"?: "ddgs" | "tavily" | "brave" | "serper" | "model" | "openai" | null;
                        "web.serper_api_key"?: string | null;
                        "web.tavily_api_key"?: string | null;
                        "web.timeout_s"?: number | null;
                        "web.token_budget"?: number | null;
                    };
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        config_file: string;
                        settings: {
                            choices?: string[];
                            default: string | number | string[] | null;
                            doc: string;
                            is_set: boolean;
                            /** @enum {string} */
                            kind: "text" | "verbatim" | "path" | "url" | "count" | "choice" | "texts";
                            least?: number;
                            most?: number;
                            name: string;
                            restart: boolean;
                            savable: boolean;
                            secret: boolean;
                            source: string;
                            value: string | number | string[] | null;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
        };
    };
    get_tools: {
        parameters: {
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        results: {
                            description: string;
                            /** @enum {string} */
                            effect: "read" | "write" | "destructive";
                            name: string;
                            open_world: boolean;
                            parameters: {
                                [key: string]: unknown;
                            };
                            /** @enum {string} */
                            profile: "essential" | "standard" | "full";
                            returns: {
                                [key: string]: unknown;
                            };
                            title: string;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_accept_proposal: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    digest: string;
                    /** @default [] */
                    files?: string[];
                    /** @default [] */
                    hunks?: string[];
                    proposal_id: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["accept_proposal.RequestFailure"][];
                        files?: components["schemas"]["accept_proposal.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["accept_proposal.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["accept_proposal.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_append_to_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    content: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["append_to_file.RequestFailure"][];
                        files?: components["schemas"]["append_to_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["append_to_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["append_to_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_append_to_section: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    content: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    heading: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["append_to_section.RequestFailure"][];
                        files?: components["schemas"]["append_to_section.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["append_to_section.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["append_to_section.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_ask_vault: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    added?: string[];
                    answer?: string;
                    can?: ("add" | "delete" | "create" | "navigate")[];
                    /** @enum {string} */
                    editable?: "current" | "linked" | "context";
                    include_same_folder?: boolean;
                    link_depth?: number;
                    /** @default  */
                    note?: string;
                    preset?: string;
                    run_id?: string;
                    scout?: boolean;
                    /** @default  */
                    task?: string;
                    web?: boolean;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: string;
                        citations?: {
                            [key: string]: unknown;
                        }[];
                        context?: {
                            [key: string]: unknown;
                        };
                        edit_results?: {
                            [key: string]: unknown;
                        };
                        notes?: string[];
                        opened?: string[];
                        pipeline: {
                            [key: string]: unknown;
                        };
                        proposals?: string[];
                        proposed_edits?: {
                            [key: string]: unknown;
                        }[];
                        question?: {
                            [key: string]: unknown;
                        };
                        run_id: string;
                        state: string;
                        success: boolean;
                        usage: {
                            [key: string]: unknown;
                        };
                    };
                };
            };
        };
    };
    post_tools_batch_move_files: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    moves: {
                        [key: string]: string;
                    }[];
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["batch_move_files.RequestFailure"][];
                        files?: components["schemas"]["batch_move_files.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["batch_move_files.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["batch_move_files.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_batch_update_frontmatter: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    field: string;
                    /** @enum {string} */
                    operation?: "set" | "remove" | "append" | "rename";
                    paths: string[];
                    /** @default  */
                    reason?: string;
                    value?: unknown;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["batch_update_frontmatter.RequestFailure"][];
                        files?: components["schemas"]["batch_update_frontmatter.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["batch_update_frontmatter.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["batch_update_frontmatter.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_broken_links: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default  */
                    path?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["broken_links.LinkRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_call_tool: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default null */
                    arguments?: Record<string, never> | null;
                    name: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_create_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default  */
                    content?: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    frontmatter?: string | Record<string, never>;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["create_file.RequestFailure"][];
                        files?: components["schemas"]["create_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["create_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["create_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_daily_note: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default false */
                    create?: boolean;
                    /** @default  */
                    date?: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        content?: string;
                        created: boolean;
                        date: string;
                        end_line?: number;
                        files?: components["schemas"]["daily_note.WrittenFile"][];
                        foreign?: boolean;
                        hash?: string | null;
                        message?: string;
                        next_offset?: number;
                        notes?: string[];
                        offset?: number;
                        path: string;
                        pending?: components["schemas"]["daily_note.PendingEdit"][];
                        problems?: components["schemas"]["daily_note.NoteProblem"][];
                        proposal_id?: string;
                        reason?: string;
                        review_command?: string;
                        review_url?: string;
                        start_line?: number;
                        /** @enum {string} */
                        status?: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                        total_chars?: number;
                        truncated?: boolean;
                    };
                };
            };
        };
    };
    post_tools_delete_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["delete_file.RequestFailure"][];
                        files?: components["schemas"]["delete_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["delete_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["delete_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_edit_at: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default  */
                    content?: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    path: string;
                    position: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["edit_at.RequestFailure"][];
                        files?: components["schemas"]["edit_at.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["edit_at.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["edit_at.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_edit_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 1 */
                    count?: number;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    new_text: string;
                    old_text: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["edit_file.RequestFailure"][];
                        files?: components["schemas"]["edit_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["edit_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["edit_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_edit_proposal: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    digest: string;
                    hunk: string;
                    new_text: string;
                    proposal_id: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        change_ids?: string[];
                        client: string;
                        created: string;
                        decided_at?: string;
                        decided_by?: string;
                        digest: string;
                        expires: string;
                        files: components["schemas"]["edit_proposal.ProposalFile"][];
                        folders?: components["schemas"]["edit_proposal.FolderMove"][];
                        id: string;
                        links_rewritten?: components["schemas"]["edit_proposal.RewrittenLink"][];
                        notes?: string[];
                        reason?: string;
                        rejection?: string;
                        review_command?: string;
                        review_url?: string;
                        run?: string;
                        /** @enum {string} */
                        status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                        success: boolean;
                        superseded_by?: string;
                        tainted?: boolean;
                        /** @enum {string} */
                        undone?: "all" | "part";
                        undone_by?: string[];
                        why?: string;
                    };
                };
            };
        };
    };
    post_tools_explore_vault: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default  */
                    folder?: string;
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default  */
                    tag?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        folder: string;
                        folders: components["schemas"]["explore_vault.FolderRow"][];
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["explore_vault.NamedNote"][];
                        success: boolean;
                        tag?: string;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_fetch_note: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 100000 */
                    length?: number;
                    /** @default 0 */
                    offset?: number;
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        content: string;
                        embeds?: components["schemas"]["fetch_note.EmbedContent"][];
                        end_line: number;
                        foreign?: boolean;
                        hash: string;
                        next_offset?: number;
                        offset: number;
                        path: string;
                        pending?: components["schemas"]["fetch_note.PendingEdit"][];
                        problems?: components["schemas"]["fetch_note.NoteProblem"][];
                        start_line: number;
                        success: boolean;
                        total_chars: number;
                        truncated: boolean;
                    };
                };
            };
        };
    };
    post_tools_fetch_page: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 8000 */
                    length?: number;
                    /** @default 0 */
                    offset?: number;
                    url: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        content: string;
                        content_type: string;
                        date: string;
                        message?: string;
                        next_offset: number | null;
                        offset: number;
                        success: boolean;
                        title: string;
                        total_chars: number;
                        truncated: boolean;
                        untrusted: boolean;
                        url: string;
                    };
                };
            };
        };
    };
    post_tools_find_backlinks: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    note_name: string;
                    /** @default 0 */
                    offset?: number;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        exists: boolean;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        links: components["schemas"]["find_backlinks.LinkRow"][];
                        next_offset?: number;
                        notes?: string[];
                        notes_of_that_name: string[];
                        offset: number;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_find_notes: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    created_from?: string;
                    created_to?: string;
                    exclude_folders?: string[];
                    exclude_tags?: string[];
                    fields?: string[];
                    /** @default  */
                    folder?: string;
                    /** @default 50 */
                    limit?: number;
                    modified_from?: string;
                    modified_to?: string;
                    /** @default 0 */
                    offset?: number;
                    properties?: string[];
                    /** @default  */
                    query?: string;
                    sort?: string;
                    tags?: string[];
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        nearest?: {
                            [key: string]: unknown;
                        }[];
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: {
                            [key: string]: unknown;
                        }[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_find_outlinks: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        links: components["schemas"]["find_outlinks.LinkRow"][];
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        path: string;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_find_tool: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 5 */
                    limit?: number;
                    query: string;
                    /** @default false */
                    returns?: boolean;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        message?: string;
                        results: components["schemas"]["find_tool.ToolDescription"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_get_current_date: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        date: string;
                        success: boolean;
                        time: string;
                        weekday: string;
                        zone: string;
                    };
                };
            };
        };
    };
    post_tools_get_links: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @default both
                     * @enum {string}
                     */
                    direction?: "in" | "out" | "both";
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        path: string;
                        pending: number;
                        results: components["schemas"]["get_links.Neighbor"][];
                        success: boolean;
                        total: number;
                        unresolved: string[];
                    };
                };
            };
        };
    };
    post_tools_get_links_recursive: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 2 */
                    depth?: number;
                    /** @enum {string} */
                    direction?: "in" | "out" | "both";
                    exclude_folders?: string[];
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        depth: number;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        path: string;
                        pending: number;
                        results: components["schemas"]["get_links_recursive.ReachableNote"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_all_tags: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default  */
                    prefix?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["list_all_tags.TagRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_changes: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    client?: string;
                    /** @default 20 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    path?: string;
                    proposal_id?: string;
                    run?: string;
                    since?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        next_offset?: number;
                        offset: number;
                        results: components["schemas"]["list_changes.ChangeRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_files_by_frontmatter: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    field: string;
                    /** @default 100 */
                    limit?: number;
                    /**
                     * @default contains
                     * @enum {string}
                     */
                    match_type?: "contains" | "equals";
                    /** @default 0 */
                    offset?: number;
                    value: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_notes: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default  */
                    folder?: string;
                    /** @default 50 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["list_notes.NotePreview"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_preferences: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        foreign?: boolean;
                        hash?: string;
                        message?: string;
                        path: string;
                        results: components["schemas"]["list_preferences.PreferenceRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_proposals: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 20 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default  */
                    path?: string;
                    /** @default  */
                    status?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        next_offset?: number;
                        offset: number;
                        results: components["schemas"]["list_proposals.ProposalRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_list_tags: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default  */
                    prefix?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["list_tags.TagRow"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_log_interaction: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default null */
                    files?: string[] | null;
                    /** @default null */
                    full_response?: string | null;
                    query: string;
                    summary: string;
                    task_description: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["log_interaction.RequestFailure"][];
                        files?: components["schemas"]["log_interaction.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links: string[];
                        links_rewritten?: components["schemas"]["log_interaction.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["log_interaction.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_move_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    destination: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    reason?: string;
                    source: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["move_file.RequestFailure"][];
                        files?: components["schemas"]["move_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["move_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["move_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_note_info: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        aliases: string[];
                        as_of: string;
                        created?: string;
                        foreign?: boolean;
                        hash: string;
                        headings: number;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        kind: string;
                        lines: number;
                        links_in: components["schemas"]["note_info.IncomingLinks"];
                        links_out: components["schemas"]["note_info.OutgoingLinks"];
                        modified?: string;
                        notes?: string[];
                        outline: components["schemas"]["note_info.HeadingRow"][];
                        path: string;
                        pending: number;
                        problems?: components["schemas"]["note_info.NoteProblem"][];
                        properties: {
                            [key: string]: unknown;
                        };
                        size: number;
                        success: boolean;
                        tags: string[];
                        tasks: components["schemas"]["note_info.TaskRows"];
                        title: string;
                        waiting_edits?: components["schemas"]["note_info.PendingEdit"][];
                    };
                };
            };
        };
    };
    post_tools_orphans: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_prepend_to_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    content: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["prepend_to_file.RequestFailure"][];
                        files?: components["schemas"]["prepend_to_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["prepend_to_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["prepend_to_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_read_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    expand_embeds?: boolean;
                    heading?: string;
                    /** @default 4000 */
                    length?: number;
                    line_numbers?: boolean;
                    /** @default 0 */
                    offset?: number;
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        content: string;
                        embeds?: components["schemas"]["read_file.EmbedContent"][];
                        end_line: number;
                        foreign?: boolean;
                        hash: string;
                        next_offset?: number;
                        offset: number;
                        path: string;
                        pending?: components["schemas"]["read_file.PendingEdit"][];
                        problems?: components["schemas"]["read_file.NoteProblem"][];
                        start_line: number;
                        success: boolean;
                        total_chars: number;
                        truncated: boolean;
                    };
                };
            };
        };
    };
    post_tools_reject_proposal: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default [] */
                    files?: string[];
                    /** @default [] */
                    hunks?: string[];
                    proposal_id: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        files?: string[];
                        hunks?: string[];
                        id: string;
                        reason: string;
                        status: ("open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded") | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_remove_preference: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    line_number: number;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["remove_preference.RequestFailure"][];
                        files?: components["schemas"]["remove_preference.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        line_number?: number;
                        links_rewritten?: components["schemas"]["remove_preference.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        preference: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["remove_preference.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_rename_anchor: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    anchor: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    name: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["rename_anchor.RequestFailure"][];
                        files?: components["schemas"]["rename_anchor.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["rename_anchor.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["rename_anchor.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_rename_tag: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    new: string;
                    old: string;
                    /** @default [] */
                    paths?: string[];
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["rename_tag.RequestFailure"][];
                        files?: components["schemas"]["rename_tag.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["rename_tag.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["rename_tag.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_replace_section: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    content: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default  */
                    expected_hash?: string;
                    heading: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["replace_section.RequestFailure"][];
                        files?: components["schemas"]["replace_section.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["replace_section.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["replace_section.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_run_agent: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    agent: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: string;
                        changes?: string[];
                        citations?: {
                            [key: string]: unknown;
                        }[];
                        notes?: string[];
                        proposals?: string[];
                        session_id: string;
                        state: string;
                        success: boolean;
                        usage?: {
                            [key: string]: unknown;
                        };
                    };
                };
            };
        };
    };
    post_tools_run_script: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    code: string;
                    /**
                     * @default strict
                     * @enum {string}
                     */
                    profile?: "strict" | "local" | "extended";
                    /** @default null */
                    timeout_s?: number | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        calls: number;
                        code?: string;
                        error: string;
                        hint?: string;
                        kind: string;
                        message?: string;
                        notes?: string[];
                        ok: boolean;
                        peak_mb: number;
                        proposals: components["schemas"]["run_script.ScriptProposal"][];
                        result: unknown;
                        stdout: string;
                        success: boolean;
                        wall_s: number;
                        walls: string[];
                    };
                };
            };
        };
    };
    post_tools_save_preference: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    preference: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["save_preference.RequestFailure"][];
                        files?: components["schemas"]["save_preference.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        line_number?: number;
                        links_rewritten?: components["schemas"]["save_preference.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        preference: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["save_preference.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_scout_vault: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    answer?: string;
                    /** @default  */
                    note?: string;
                    notes?: number;
                    rounds?: number;
                    run_id?: string;
                    /** @default  */
                    task?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answer: string;
                        citations?: {
                            [key: string]: unknown;
                        }[];
                        context?: {
                            [key: string]: unknown;
                        };
                        edit_results?: {
                            [key: string]: unknown;
                        };
                        notes?: string[];
                        opened?: string[];
                        pipeline: {
                            [key: string]: unknown;
                        };
                        proposals?: string[];
                        proposed_edits?: {
                            [key: string]: unknown;
                        }[];
                        question?: {
                            [key: string]: unknown;
                        };
                        run_id: string;
                        state: string;
                        success: boolean;
                        usage: {
                            [key: string]: unknown;
                        };
                    };
                };
            };
        };
    };
    post_tools_search_by_date_range: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @default modified
                     * @enum {string}
                     */
                    date_type?: "modified" | "created";
                    end_date: string;
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    start_date: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_search_by_folder: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    folder: string;
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    /** @default false */
                    recursive?: boolean;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: string[];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_search_keyword: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 10 */
                    limit?: number;
                    query: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        message?: string;
                        nearest?: components["schemas"]["search_keyword.NoteHit"][];
                        notes?: string[];
                        pending: number;
                        results: components["schemas"]["search_keyword.NoteHit"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_search_semantic: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 10 */
                    limit?: number;
                    query: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        message?: string;
                        nearest?: components["schemas"]["search_semantic.NoteHit"][];
                        notes?: string[];
                        pending: number;
                        results: components["schemas"]["search_semantic.NoteHit"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_search_task_relevant: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default  */
                    current_note?: string;
                    /** @default 10 */
                    limit?: number;
                    task: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        message?: string;
                        nearest?: components["schemas"]["search_task_relevant.NoteHit"][];
                        notes?: string[];
                        pending: number;
                        results: components["schemas"]["search_task_relevant.NoteHit"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_search_vault: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    created_from?: string;
                    created_to?: string;
                    exclude_folders?: string[];
                    exclude_tags?: string[];
                    explain?: boolean;
                    folders?: string[];
                    include_log?: boolean;
                    /**
                     * @default hybrid
                     * @enum {string}
                     */
                    mode?: "hybrid" | "semantic" | "keyword";
                    modified_from?: string;
                    modified_to?: string;
                    /** @default 5 */
                    n_results?: number;
                    per_note?: number;
                    properties?: string[];
                    query: string;
                    tags?: string[];
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        message?: string;
                        nearest?: components["schemas"]["search_vault.PassageHit"][];
                        notes?: string[];
                        pending: number;
                        results: components["schemas"]["search_vault.PassageHit"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_show_proposal: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    proposal_id: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_ids?: string[];
                        client: string;
                        created: string;
                        decided_at?: string;
                        decided_by?: string;
                        digest: string;
                        expires: string;
                        files: components["schemas"]["show_proposal.ProposalFile"][];
                        folders?: components["schemas"]["show_proposal.FolderMove"][];
                        id: string;
                        links_rewritten?: components["schemas"]["show_proposal.RewrittenLink"][];
                        notes?: string[];
                        reason?: string;
                        rejection?: string;
                        review_command?: string;
                        review_url?: string;
                        run?: string;
                        /** @enum {string} */
                        status: "open" | "stale" | "accepted" | "partly_accepted" | "rejected" | "expired" | "superseded";
                        success: boolean;
                        superseded_by?: string;
                        tainted?: boolean;
                        /** @enum {string} */
                        undone?: "all" | "part";
                        undone_by?: string[];
                        why?: string;
                    };
                };
            };
        };
    };
    post_tools_transcribe_audio: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    path: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        errors?: components["schemas"]["transcribe_audio.TranscriptionFailure"][];
                        message?: string;
                        path: string;
                        results: components["schemas"]["transcribe_audio.RecordingTranscript"][];
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_undo_change: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default  */
                    change_id?: string;
                    /** @default false */
                    dry_run?: boolean;
                    /** @default false */
                    partial?: boolean;
                    /** @default  */
                    proposal_id?: string;
                    /** @default  */
                    reason?: string;
                    /** @default  */
                    run?: string;
                    /** @default  */
                    since?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        files: components["schemas"]["undo_change.WrittenFile"][];
                        left?: components["schemas"]["undo_change.UndoConflict"][];
                        notes?: string[];
                        /** @enum {string} */
                        status: "applied" | "planned";
                        success: boolean;
                        undone: string[];
                    };
                };
            };
        };
    };
    post_tools_update_frontmatter: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    dry_run?: boolean;
                    expected_hash?: string;
                    field: string;
                    /** @enum {string} */
                    operation?: "set" | "remove" | "append" | "rename";
                    path: string;
                    /** @default  */
                    reason?: string;
                    value?: unknown;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["update_frontmatter.RequestFailure"][];
                        files?: components["schemas"]["update_frontmatter.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["update_frontmatter.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["update_frontmatter.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    post_tools_vault_status: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        built: string;
                        chunks: number;
                        embedded: number;
                        embedding: boolean;
                        files: number;
                        index_incomplete: boolean;
                        indexing: boolean;
                        model: string;
                        notes: number;
                        pending: number;
                        problems: number;
                        remarks?: string[];
                        replaced_model: string;
                        size_bytes: number;
                        skipped: components["schemas"]["vault_status.SkippedFileRow"][];
                        stale: number;
                        success: boolean;
                        unchecked: boolean;
                        vault: string;
                        watch_failed?: string;
                    };
                };
            };
        };
    };
    post_tools_view_all_notes: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 200 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        index_incomplete: boolean;
                        index_stale: boolean;
                        limit: number;
                        next_offset?: number;
                        notes?: string[];
                        offset: number;
                        pending: number;
                        results: components["schemas"]["view_all_notes.NamedNote"][];
                        success: boolean;
                        total: number;
                    };
                };
            };
        };
    };
    post_tools_web_search: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default 8 */
                    n_results?: number;
                    query: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        message?: string;
                        notes?: string[];
                        query: string;
                        results: components["schemas"]["web_search.WebPageHit"][];
                        success: boolean;
                        total: number;
                        untrusted: boolean;
                    };
                };
            };
        };
    };
    post_tools_write_file: {
        parameters: {
        };
        requestBody: {
            content: {
                "application/json": {
                    content: string;
                    /** @default false */
                    dry_run?: boolean;
                    expected_hash: string;
                    path: string;
                    /** @default  */
                    reason?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        change_id?: string;
                        failures?: components["schemas"]["write_file.RequestFailure"][];
                        files?: components["schemas"]["write_file.WrittenFile"][];
                        hash?: string | null;
                        hidden_files?: number;
                        links_rewritten?: components["schemas"]["write_file.RewrittenLink"][];
                        message?: string;
                        notes?: string[];
                        path?: string;
                        proposal_id?: string;
                        reason?: string;
                        refusals?: components["schemas"]["write_file.RuleRefusal"][];
                        review_command?: string;
                        review_url?: string;
                        /** @enum {string} */
                        status: "applied" | "proposed" | "refused" | "planned";
                        success: boolean;
                    };
                };
            };
        };
    };
    get_trust: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: number;
                        offset: number;
                        results: {
                            client: string;
                            inherited: boolean;
                            run: string;
                            since: string;
                            source: string;
                            until: string | null;
                        }[];
                        /** @constant */
                        success: true;
                        total: number;
                    };
                };
            };
        };
    };
    post_trust: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": {
                    all?: boolean | null;
                    client?: string | null;
                    run?: string | null;
                    vault?: string | null;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        trusted: {
                            client: string;
                            inherited: boolean;
                            run: string;
                            since: string;
                            source: string;
                            until: string | null;
                        }[];
                    };
                };
            };
        };
    };
    get_usage: {
        parameters: {
            query?: {
                session_id?: string;
                vault?: string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        left: {
                            tokens: number | null;
                            usd: number | null;
                        };
                        limits: {
                            day_cents: number | null;
                            day_tokens: number | null;
                            run_tokens: number | null;
                            turn_tokens: number | null;
                        };
                        session: {
                            cost_usd?: number | null;
                            input_tokens?: number;
                            output_tokens?: number;
                            requests?: number;
                            total_tokens?: number;
                        } | null;
                        /** @constant */
                        success: true;
                        today: {
                            cost_usd: number | null;
                            input_tokens: number;
                            output_tokens: number;
                            requests: number;
                            total_tokens: number;
                        };
                    };
                };
            };
        };
    };
}
