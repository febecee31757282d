# PowerShell: what `knap` can take, as `knap completion powershell` prints it. Nothing that is completed is evaluated.
Register-ArgumentCompleter -Native -CommandName knap -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    $word = $wordToComplete.Trim("'", '"')
    $before = [Console]::OutputEncoding
    [Console]::OutputEncoding = [System.Text.Encoding]::UTF8
    # PowerShell before 7.3 leaves out an empty argument: the word follows after "=".
    try { $rows = @(& (Get-Command -CommandType Application knap)[0] __complete powershell @words "=$word" 2>$null) }
    finally { [Console]::OutputEncoding = $before }
    if ($rows.Count -gt 0 -and ($rows[0].StartsWith('files') -or $rows[0].StartsWith('folders'))) {
        return [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
    }
    $rows | Select-Object -Skip 1 | ForEach-Object {
        $value, $shown = $_ -split "`t", 2
        [System.Management.Automation.CompletionResult]::new($value, $shown, 'ParameterValue', $shown)
    }
}
