"""The word lists of the search: words that no question is about, and ideas in several languages.

All are in lower case without accents, like the texts searched. Ideographs are listed with their idea.
"""

COMMON = """
    a an the of to in on at by for from with without and or not no is was were are be been do does did has
    have had it its this that these those which what who whom whose when where how why i we you they me my
    our your us can could should would will shall may must there then than as if so about into any all
    der die das den dem des ein eine einen einem einer und oder nicht kein keine ist war sind waren wird
    wurde wurden hat haben was wer wen wem welche welchem welchen welcher welches wie wo wann warum wieso
    mit ohne fur von
    zu zum zur im in auf an bei es er sie wir ihr ich uns man auch noch nur dass ob
    el la los las un una unos unas y o no es son era fue fueron de del al en con sin por para que cual
    cuales quien como donde cuando se su sus lo le les mi tu nos hay esta este esto
    le les des du une et ou ne pas est sont etait ete a au aux en avec sans pour par que qui quel quelle
    quels quelles quoi comment pourquoi quand ce cette ces il elle on nous vous je se son sa ses
    o os as um uma e ou nao foi sao era de do da dos das em no na nos nas com sem por para que qual quais
    quem como onde quando se seu sua isto isso esse essa
"""
"""Words of English, German, Spanish, French and Portuguese that are too common to help a search."""

IDEAS = """
cause because root reason why ursache grund weil wegen warum causa motivo razon porque raison parce
    culprit culpable schuld coupable culpado 原因 理由 为什么 なぜ 因为
error errors fail failed failing failure fehler fehlgeschlagen scheitert fallo falla fallido erreur echoue
    erro falha falhou crash exception traceback 错误 失败 エラー 失敗
decision decide decided choose chose chosen pick option entscheidung entschieden nehmen gewahlt decidir
    decidido elegir elegimos opcion choisir choisi decidimos escolher escolhido opcao 决定 选择 決定 選択
reject rejected dropped discard tried abandoned verworfen probiert raus descartado probamos saca abandonne
    essaye rejete descartar tentamos rejeitado worse schlechter peor pire pior
must never always only rule constraint forbidden allowed muss niemals immer nur regel verboten darf nunca
    siempre solo regla prohibido jamais toujours seulement regle interdit sempre somente regra proibido 必须
    禁止 不要 必ず 絶対
next step open todo remaining nachste schritt offen siguiente paso pendiente falta prochaine etape reste
    proximo passo pendente 下一步 待办 次の 残り
goal aim task purpose ziel aufgabe objetivo meta tarea objectif tache tarefa 目标 任务 目標 目的
test tests testing prueba pruebas essai teste testes 测试 テスト
file files datei dateien archivo archivos fichier fichiers arquivo arquivos ficheiro 文件 ファイル
slow fast latency performance langsam schnell lento rapido latencia lent rapide lenteur latence 慢 遅い 性能
deadline until date due frist termin bis fecha plazo echeance delai prazo 截止 期限 締切
version versions fassung versao versiones 版本 バージョン
suspect suspected hypothesis candidate lead false wrong verdacht vermutet sospecha sospechoso soupcon
    soupconne suspeita pista piste spur falsch falso faux irrelevant innocent unrelated
customer client kunde kunden cliente clientes utilisateur usuario 客户 用户 顧客 ユーザー
money price cost amount geld preis kosten betrag dinero precio costo importe argent prix cout montant
    dinheiro preco custo valor 价格 金额 価格 金額
language sprache idioma lengua langue lingua answer antworte responde reponds responda
"""
"""One idea a line, continued on indented lines; by these a question finds answers in another language."""

PARTS = """
failure: error errors failed failure fehler fallo erreur erro 错误 失败 エラー 失敗
plan: step steps todo todos plan schritte pasos plan etapes passos 步骤 计划 手順 計画
first: goal task aim ziel aufgabe objetivo meta tarea objectif tache tarefa 目标 任务 目標 目的
last: last latest newest unanswered letzte letzter letztes zuletzt ultimo ultima dernier derniere 最后 最後
"""
"""Words that name a part of the record itself: its failures, plan, first or last turn."""

ASKING = "ask asked user said prompt prompts nutzer frage usuario pregunta"
"""Words that occur in questions about a conversation but seldom in the conversation."""

ENDINGS = """
    izations isations ization isation ational iciones aciones amente heiten keiten mente ungen acion tions
    ments cion coes sion tion ment heit keit ings cao ung ing ies ied ers ed er en em es os as s e n o a
"""
"""Endings that are cut off to find a stem, longest first."""
